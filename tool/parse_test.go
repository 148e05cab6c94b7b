package tool

import (
	"strings"
	"testing"
)

// parseAll renders what a parser makes of a text, a line for each reply and
// each statistic.
func parseAll(p Parser, text string) string {
	var got []string
	add := func(line Line) {
		for _, r := range line.Replies {
			got = append(got, describe(r))
		}
		if line.Stats != nil {
			got = append(got, describeStats(*line.Stats))
		}
	}
	for line := range strings.Lines(text) {
		add(p.Parse(visible(strings.TrimSuffix(line, "\n"))))
	}
	add(p.Finish())
	return strings.Join(got, "\n")
}

// Lines that real runs in testdata do not have.
func TestParse(t *testing.T) {
	const header = "PING x (10.78.0.2) 56(84) bytes of data.\n"
	tests := []struct {
		name, argv, text, want string
	}{
		{"a host's own colon", "ping", "64 bytes from fe80::1%eth0: icmp_seq=7 ttl=64 time=0.041 ms",
			"41 us, to 1 icmp seq 7 from fe80::1%eth0 of "},
		{"flow label", "ping", "PING fd77:1::2(fd77:1::2) from fd77::1 ttar: , flow 0x0beef, 56 data bytes\n64 bytes from fd77:1::2: icmp_seq=1 ttl=63 time=2.50 ms",
			"2500 us, to 10 icmp seq 1 from fd77:1::2 of fd77:1::2"},
		{"bad checksum", "ping", header + "64 bytes from 10.78.0.2: icmp_seq=1 ttl=64 time=0.319 ms (BAD CHECKSUM!)",
			"319 us, to 1 icmp seq 1 from 10.78.0.2 of x = 10.78.0.2 uncounted"},
		{"sequence number wraps", "ping", header + "64 bytes from 10.78.0.2: icmp_seq=0 ttl=64 time=0.319 ms",
			"319 us, to 1 icmp seq 0 from 10.78.0.2 of x = 10.78.0.2"},
		{"inetutils", "ping", "64 bytes from 10.78.0.2: icmp_seq=0 ttl=64 time=0.319 ms\n1 packets transmitted, 1 packets received, 0% packet loss\nround-trip min/avg/max/stddev = 0.319/0.319/0.319/0.000 ms",
			"319 us, to 1 icmp seq 0 from 10.78.0.2 of \nstats of : 1/1, 0 duplicates, 0 errors, 319/319/319 us mdev 0"},
		{"a bound is no RTT", "ping", header + "64 bytes from 10.78.0.2: icmp_seq=1 ttl=64 time<1 ms", ""},
		{"not a time", "ping", header + "64 bytes from 10.78.0.2: icmp_seq=1 ttl=64 time=NaN ms\n64 bytes from 10.78.0.2: icmp_seq=1 ttl=64 time=-1 ms\n64 bytes from 10.78.0.2: icmp_seq=1 ttl=64 time=0x1p4 ms\n64 bytes from 10.78.0.2: icmp_seq=1 ttl=64 time=9999999999999999999 ms", ""},
		{"times without counts", "ping", "rtt min/avg/max/mdev = 0.048/0.055/0.059/0.004 ms", ""},
		{"half of the times", "ping", "2 packets transmitted, 2 received, 0% packet loss, time 5ms\nrtt min/avg/max/mdev = 0.048/0.0",
			"stats of : 2/2, 0 duplicates, 0 errors"},
		{"quit", "ping", "^\\\r3/4 packets, 25% loss, min/avg/ewma/max = 0.031/0.052/0.040/0.062 ms",
			"stats of : 3/4, 0 duplicates, 0 errors, 31/52/62 us, interim"},
		{"quit before any reply", "ping", "\r0/4 packets, 100% loss", "stats of : 0/4, 0 duplicates, 0 errors, interim"},
		{"other lines", "ping", "From 10.77.0.254 icmp_seq=1 Time to live exceeded\n8 bytes from\n8 bytes from x: y\n8 bytes from x: icmp_seq=\n\x00\xff\xfe\nPING\nPING (\nPING  ()", ""},

		{"duplicate", "fping -c 2", "10.78.0.2 : duplicate for [0], 64 bytes, 0.412 ms",
			"412 us, to 1 icmp seq 0 of 10.78.0.2 duplicate uncounted"},
		{"very long", "fping -c 2", "10.78.0.2 : [0], 64 bytes, 1.234e+06 ms (1.234e+06 avg, 0% loss)",
			"1.234e+09 us, to 1000000 icmp seq 0 of 10.78.0.2"},
		{"the clock went back", "fping -c 2", "10.78.0.2 : [0], 64 bytes, -0.012 ms (-0.012 avg, 0% loss)", ""},
		{"columns need -C", "fping -c 2", "10.78.0.2 : 0.043 0.054", ""},
		{"columns", "fping -qC2", "10.78.0.2  : - 0.054",
			"54 us, to 1 icmp seq 1 of 10.78.0.2\nstats of 10.78.0.2: 1/2, 0 duplicates, 0 errors"},
		{"no columns", "fping --vcount=2", "10.78.0.2 : 0.043 oops", ""},
		{"after other address", "fping -c 1", " [<- 10.78.0.9] [<- 10.78.0.9]10.78.0.2 : xmt/rcv/%loss = 1/1/0%, min/avg/max = 0.04/0.04/0.04",
			"stats of 10.78.0.2: 1/1, 0 duplicates, 0 errors, 40/40/40 us"},
		{"terse needs -a -e", "fping -e", "10.78.0.2 (0.043 ms)", ""},
		{"name too long", "fping -e", strings.Repeat("x", 500) + " is alive (0.043 ms)", ""},

		{"extensions and notes", "traceroute -e -A", "traceroute to x (10.78.0.2), 30 hops max, 60 byte packets\n" +
			" 3  r.lab (10.77.0.254) [AS64500] <MPLS:L=16001,E=0,S=1,T=1>  1.045 ms !<13> '-4' * o.lab (10.77.1.254) [*]  2.010 ms !S",
			"1045 us, to 1: hop 3 probe 6 udp seq -1 port 33440 from 10.77.0.254 of x = 10.78.0.2\n" +
				"2010 us, to 1: hop 3 probe 8 udp seq -1 port 33442 from 10.77.1.254 of x = 10.78.0.2"},
		{"a name is not an address", "traceroute", "traceroute to x (10.78.0.2), 30 hops max, 60 byte packets\n 1  10.9.9.9 (10.77.0.254)  0.1 ms",
			"100 us, to 100: hop 1 probe 0 udp seq -1 port 33434 from 10.77.0.254 of x = 10.78.0.2"},
		{"more probes than asked for", "traceroute -q 1", "traceroute to x (10.78.0.2), 30 hops max, 60 byte packets\n 1  10.77.0.254  0.1 ms  0.2 ms",
			"100 us, to 100: hop 1 probe 0 udp seq -1 port 33434 from 10.77.0.254 of x = 10.78.0.2\n200 us, to 100: hop 1 probe -1 udp seq -1 from 10.77.0.254 of x = 10.78.0.2"},
		{"ports end", "traceroute -p 65535", "traceroute to x (10.78.0.2), 30 hops max, 60 byte packets\n 1  10.77.0.254  0.1 ms  0.2 ms",
			"100 us, to 100: hop 1 probe 0 udp seq -1 port 65535 from 10.77.0.254 of x = 10.78.0.2\n200 us, to 100: hop 1 probe 1 udp seq -1 from 10.77.0.254 of x = 10.78.0.2"},
		{"busybox with -I", "busybox traceroute -I", "traceroute to x (10.78.0.2), 30 hops max, 46 byte packets\n 1  10.77.0.254  0.1 ms",
			"100 us, to 100: hop 1 probe 0  seq -1 from 10.77.0.254 of x = 10.78.0.2"},
		{"no header", "traceroute", " 1  10.77.0.254  0.1 ms", ""},
		{"hops out of range", "traceroute", "traceroute to x (10.78.0.2), 30 hops max\n 0  10.77.0.254  0.1 ms\n 256  10.77.0.254  0.1 ms\n 1  10.77.0.254" + strings.Repeat(" 1 ms", 256), ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p, ok := For(strings.Fields(test.argv))
			if !ok {
				t.Fatalf("%s is not recognised", test.argv)
			}
			if got := parseAll(p, test.text); got != test.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, test.want)
			}
		})
	}
}

func TestFor(t *testing.T) {
	const p, f, tr = "*tool.ping", "*tool.fping", "*tool.traceroute"
	tests := []struct{ argv, want string }{
		{"ping 10.78.0.2", p},
		{"/bin/ping6 fd77::1", p},
		{"/bin/busybox ping 10.78.0.2", p},
		{"env LANG=C A= -u B ping x", p},
		{"timeout 5 ping x", p},
		{"timeout -k 1 --signal=INT 5 fping x", f},
		{"stdbuf -oL nice -n 5 taskset -c 1 traceroute6 x", tr},
		{"busybox timeout 5 ping x", p},
		{"env -- ping x", p},
		{"timeout -- 5 ping x", p},
		{"traceroute.db x", tr},
		{"sh -c ping", ""},
		{"pinging x", ""},
		{"env A=1", ""},
		{"timeout ping", ""},
		{"busybox", ""},
		{strings.Repeat("env ", 100) + "ping x", ""},
		{"", ""},
	}
	for _, test := range tests {
		parser, ok := For(strings.Fields(test.argv))
		got := ""
		switch parser.(type) {
		case *ping:
			got = p
		case *fping:
			got = f
		case *traceroute:
			got = tr
		}
		if got != test.want || ok != (test.want != "") {
			t.Errorf("For(%q) = %s, %v; want %s", test.argv, got, ok, test.want)
		}
	}
}

func TestTracerouteOptions(t *testing.T) {
	tests := []struct {
		argv string
		want traceroute
	}{
		{"traceroute x", traceroute{perHop: 3, first: 1, proto: "udp", port: 33434, seq: -1}},
		{"traceroute -q5 -f 2 -p 4000 x", traceroute{perHop: 5, first: 2, proto: "udp", port: 4000, seq: -1}},
		{"traceroute --queries=5 --first 2 x", traceroute{perHop: 5, first: 2, proto: "udp", port: 33434, seq: -1}},
		{"traceroute -nIq 1 x", traceroute{perHop: 1, first: 1, proto: "icmp", seq: 1}},
		{"traceroute -M icmp -p 9 x", traceroute{perHop: 3, first: 1, proto: "icmp", seq: 9}},
		{"traceroute -T -p 443 x", traceroute{perHop: 3, first: 1, proto: "tcp", seq: -1}},
		{"tcptraceroute x 443", traceroute{perHop: 3, first: 1, proto: "tcp", seq: -1}},
		{"traceroute -U x", traceroute{perHop: 3, first: 1, proto: "udp", seq: -1}},
		{"traceroute -P 47 x", traceroute{perHop: 3, first: 1, seq: -1}},
		{"traceroute --mtu x", traceroute{perHop: 3, first: 1, proto: "udp", port: 33434, seq: -1, unsure: true}},
		{"traceroute --interface -I x", traceroute{perHop: 3, first: 1, proto: "udp", port: 33434, seq: -1}},
		{"traceroute -q 999999999999 -f -1 -- -I", traceroute{perHop: 3, first: 1, proto: "udp", port: 33434, seq: -1}},
		{"busybox traceroute -q 2 x", traceroute{perHop: 2, first: 1, proto: "udp", port: 33435, seq: -1}},
	}
	for _, test := range tests {
		p, _ := For(strings.Fields(test.argv))
		if got := *p.(*traceroute); got != test.want {
			t.Errorf("%s:\n got %+v\nwant %+v", test.argv, got, test.want)
		}
	}
}

func TestMillis(t *testing.T) {
	tests := []struct {
		token          string
		us, resolution float64
		ok             bool
	}{
		{"0.123", 123, 1, true},
		{"12.3", 12300, 100, true},
		{"151", 151000, 1000, true},
		{"0.057", 57, 1, true},
		{"1.23e+06", 1.23e9, 1e7, true},
		{"0.0571", 57.1, 0.1, true},
		{"", 0, 0, false}, {".5", 0, 0, false}, {"1e5", 0, 0, false}, {"1_0", 0, 0, false}, {"+1", 0, 0, false},
		{"inf", 0, 0, false}, {"1.2.3", 0, 0, false}, {"1e+999", 0, 0, false}, {"1e+99", 0, 0, false}, {"1e+", 0, 0, false},
	}
	for _, test := range tests {
		us, resolution, ok := millis(test.token)
		if ok != test.ok || diff(us, test.us) || diff(resolution, test.resolution) {
			t.Errorf("millis(%q) = %v, %v, %v", test.token, us, resolution, ok)
		}
	}
}

func diff(a, b float64) bool { return a-b > 1e-9*(1+b) || b-a > 1e-9*(1+b) }
