package load

import (
	"strings"
	"testing"
	"time"
)

const pingOutput = `PING 127.0.0.1 (127.0.0.1) 64(92) bytes of data.
72 bytes from 127.0.0.1: icmp_seq=1 ttl=64 time=0.074 ms
72 bytes from 127.0.0.1: icmp_seq=2 ttl=64 time=0.004 ms
72 bytes from 127.0.0.1: icmp_seq=2 ttl=64 time=0.020 ms (DUP!)
From 10.79.0.1 icmp_seq=3 Destination Host Unreachable
72 bytes from 127.0.0.1: icmp_seq=4 ttl=64 time=12.3 ms

--- 127.0.0.1 ping statistics ---
4 packets transmitted, 3 received, +1 duplicates, +1 errors, 25% packet loss, time 301ms
rtt min/avg/max/mdev = 0.003/0.004/12.300/0.002 ms, ipg/ewma 0.013/0.007 ms
`

func TestParsePing(t *testing.T) {
	r, err := parsePing(pingOutput)
	if err != nil {
		t.Fatal(err)
	}
	if r.replies != 3 || r.sent != 4 || r.received != 3 || r.sum != 12378*time.Microsecond || r.wall < 301*time.Millisecond {
		t.Errorf("%+v", r)
	}
	if _, err := parsePing("PING 127.0.0.1 (127.0.0.1): 56 data bytes\n64 bytes from 127.0.0.1: seq=0 ttl=64 time=0.050 ms\n\n" +
		"--- 127.0.0.1 ping statistics ---\n1 packets transmitted, 1 packets received, 0% packet loss\n"); err == nil {
		t.Error("busybox ping passes for iputils'")
	}
}

func FuzzParsePing(f *testing.F) {
	f.Add(pingOutput)
	f.Fuzz(func(t *testing.T, text string) {
		if r, err := parsePing(text); err == nil && uint64(r.rtt.TotalCount()) != r.replies {
			t.Errorf("%+v", r)
		}
	})
}

// The ends of what iperf3 3.12 and 3.9 print, the latter without retransmits in the sum of what was received.
const (
	iperf312 = `{"start":{"version":"iperf 3.12"},"intervals":[],"end":{
		"sum_sent":{"start":0,"end":1.00003,"seconds":1.00003,"bytes":1756364800,"bits_per_second":14050496885.093447,"retransmits":1,"sender":true},
		"sum_received":{"start":0,"end":1.000699,"seconds":1.000699,"bytes":1750073344,"bits_per_second":13990807177.78273,"sender":true}}}`
	iperf39 = `{"end":{"sum_sent":{"seconds":1.0,"bytes":1000000,"bits_per_second":8000000,"retransmits":0},
		"sum_received":{"seconds":2.0,"bytes":1000000,"bits_per_second":4000000}}}`
	iperfRefused = `{"start":{"connected":[],"version":"iperf 3.12"},"intervals":[],"end":{},"error":"unable to connect to server: Connection refused"}`
	iperfBits    = `{"end":{"sum_sent":{"seconds":1,"bytes":1000000},"sum_received":{"seconds":1,"bytes":1000000,"bits_per_second":1000000}}}`
)

func TestParseIperf(t *testing.T) {
	for text, want := range map[string]float64{iperf312: 1750073344 / 1.000699, iperf39: 500000} {
		r, err := parseIperf([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if s := r.sample(Host{}); s.BytesPerSecond != want || s.Failed() != nil {
			t.Errorf("%v bytes/s, want %v; %v", s.BytesPerSecond, want, s.Failed())
		}
	}
	if r, err := parseIperf([]byte(iperfBits)); err != nil || r.sample(Host{}).Failed() == nil {
		t.Errorf("bytes taken for bits pass: %v", err)
	}
	for text, want := range map[string]string{
		iperfRefused: "iperf3 says: unable to connect to server: Connection refused", "": "unexpected end of JSON input",
		`{"end":{}}`: "no bytes received", iperf312[:300]: "unexpected end",
	} {
		if _, err := parseIperf([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want %q", err, want)
		}
	}
}

func FuzzParseIperf(f *testing.F) {
	for _, seed := range []string{iperf312, iperf39, iperfRefused} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if r, err := parseIperf(text); err == nil && r.sample(Host{}).Wall < 0 {
			t.Errorf("%+v", r)
		}
	})
}

const wrkOutput = `Running 1s test @ http://127.0.0.1:21114/
  1 threads and 1 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   298.02us  766.80us   7.22ms   90.28%
    Req/Sec    22.81k    14.66k   45.81k    72.73%
  Latency Distribution
     50%   36.00us
     99%    3.67ms
  24885 requests in 1.10s, 3.56MB read
Requests/sec:  22628.01
Transfer/sec:      3.24MB
tare-summary 1099743 24885 3732750 0
tare-latency 36 24000
tare-latency 3670 885
tare-end
`

func TestParseWrk(t *testing.T) {
	r, err := parseWrk([]byte(wrkOutput))
	if err != nil {
		t.Fatal(err)
	}
	s := r.sample(Host{})
	if s.Messages != 24885 || s.Wall != 1099743*time.Microsecond || s.RTT.ValueAtQuantile(50)/1000 != 36 || s.RTT.TotalCount() != 24885 || s.Failed() != nil {
		t.Errorf("%+v, p50 %d, %v", s, s.RTT.ValueAtQuantile(50), s.Failed())
	}
	failing := strings.Replace(wrkOutput, "3732750 0", "3732750 7", 1)
	if r, err := parseWrk([]byte(failing)); err != nil || r.sample(Host{}).Failed() == nil {
		t.Errorf("failed requests pass: %v", err)
	}
	for text, want := range map[string]string{
		"unable to connect to 127.0.0.1:21999 Connection refused": "unable to connect",
		strings.Replace(wrkOutput, "tare-end\n", "", 1):           "did not run to its end",
		"tare-summary 1 2 3\n":                                    "3 numbers instead of 4",
		"tare-summary 1 2 3 -4\n":                                 "invalid syntax",
	} {
		if _, err := parseWrk([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want %q", err, want)
		}
	}
}

func FuzzParseWrk(f *testing.F) {
	f.Add([]byte(wrkOutput))
	f.Fuzz(func(t *testing.T, text []byte) {
		if r, err := parseWrk(text); err == nil && uint64(r.rtt.TotalCount()) != r.counted {
			t.Errorf("%+v", r)
		}
	})
}

func TestListener(t *testing.T) {
	const tcp = "   0: 0100007F:5277 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 123456 1 0000000000000000 100 0 0 10 0"
	if inode, ok := listener(tcp, "0A", 21111); !ok || inode != "123456" {
		t.Errorf("%q, %v", inode, ok)
	}
	for _, line := range []string{"", "  sl  local_address rem_address   st", strings.Replace(tcp, " 0A ", " 01 ", 1), strings.Replace(tcp, "5277", "5278", 1)} {
		if _, ok := listener(line, "0A", 21111); ok {
			t.Errorf("%q passes for a listener", line)
		}
	}
}

func TestParseCPUTimes(t *testing.T) {
	const stat = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 2 3 100 5 6 7 8 0 0\ncpu1 1 2 3 200 5 6 7 9 0 0\ncpu10 1 1 1 1 1 1 1 1 0 0\nintr 1 2 3 4 5 6 7 8 9\n"
	if got, want := parseCPUTimes([]byte(stat), []int{0, 1}), (cpuTimes{idle: 300, irq: 12, softirq: 14, steal: 17}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
