package lab

import (
	"context"
	"errors"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestParseDelay(t *testing.T) {
	zero, one := 0, 1
	for _, tt := range []struct {
		text    string
		want    Delay
		wantErr string // part of the text; "" for none
	}{
		{"nic=netem:2ms", Delay{At: "nic", By: DelayByNetem, Time: 2 * time.Millisecond}, ""},
		{"veth12=tbf:10us", Delay{At: "veth12", By: DelayByTBF, Time: 10 * time.Microsecond}, ""},
		{"c1=forwarder:0s,cpu=0", Delay{At: "c1", By: DelayByForwarder, CPU: &zero}, ""},
		{"remote=busy-cpu:4ms,cpu=1", Delay{At: "remote", By: DelayByBusyCPU, Time: 4 * time.Millisecond, CPU: &one}, ""},
		{"host=nft-rules:5000", Delay{At: "host", By: DelayByRules, Rules: 5000}, ""},
		{"netem:2ms", Delay{}, "no place is named"},
		{"nic=netem", Delay{}, "no amount is given"},
		{"nic=fq:2ms", Delay{}, `"fq" delays nothing`},
		{"nic=netem:2", Delay{}, `"2" is no amount`},
		{"host=nft-rules:2ms", Delay{}, `"2ms" is no amount`},
		{"nic=forwarder:1us,cpu=x", Delay{}, `"cpu=x" is not cpu=N`},
		{"nic=forwarder:1us,cpus=1", Delay{}, `"cpus=1" is not cpu=N`},
		{"nic=forwarder:1us,cpu=-1", Delay{}, `"cpu=-1" is not cpu=N`},
	} {
		t.Run(tt.text, func(t *testing.T) {
			got, err := ParseDelay(tt.text)
			if tt.wantErr != "" {
				if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), tt.wantErr) {
					t.Errorf("got %v, want an ErrInvalid with %q", err, tt.wantErr)
				}
				return
			}
			if err != nil || got.String() != tt.want.String() || got.String() != tt.text {
				t.Errorf("got %v, %v; want %v", got, err, tt.want)
			}
		})
	}
}

func TestDelayCheck(t *testing.T) {
	for _, tt := range []struct {
		name    string
		options Options
		delays  string
		wantErr string
	}{
		{"all kinds", Options{Containers: 2}, "nic=netem:1us remote=tbf:1s c2=forwarder:0s veth1=busy-cpu:1ms host=nft-rules:1", ""},
		{"two at one device", Options{}, "nic=forwarder:1us nic=tbf:1ms", ""},
		{"overlay", Options{Network: NetworkVXLAN}, "c1=forwarder:1us host=nft-rules:1", ""},
		{"macvlan", Options{Network: NetworkMacvlan}, "nic=forwarder:1us c1=tbf:1ms", ""},
		{"no such place", Options{}, "eth0=tbf:1ms", `there is no "eth0": nic, remote, host, c1, veth1 are possible`},
		{"no such container", Options{Containers: 3}, "veth4=tbf:1ms", `c1 to c3, veth1 to veth3 are possible`},
		{"a veth of macvlan", Options{Network: NetworkMacvlan}, "veth1=tbf:1ms", "no cable"},
		{"a cable of macvlan", Options{Network: NetworkMacvlan}, "c1=forwarder:1ms", "no cable"},
		{"rules of macvlan", Options{Network: NetworkMacvlan}, "host=nft-rules:10", "does not forward"},
		{"rules elsewhere", Options{}, "nic=nft-rules:10", "rules are at host"},
		{"others at host", Options{}, "host=netem:1ms", "rules are at host"},
		{"no rules", Options{}, "host=nft-rules:0", "1 to 100000 rules"},
		{"too many rules", Options{}, "host=nft-rules:100001", "1 to 100000 rules"},
		{"negative", Options{}, "nic=forwarder:-1us", "0s to 1s are possible"},
		{"too short", Options{}, "nic=netem:999ns", "1us to 1s are possible"},
		{"too long", Options{}, "nic=netem:1001ms", "1us to 1s are possible"},
		{"CPU of a queue", Options{}, "nic=tbf:1ms,cpu=0", "no CPU of its own"},
		{"CPU of rules", Options{}, "host=nft-rules:10,cpu=0", "no CPU of their own"},
		{"one CPU twice", Options{}, "nic=forwarder:1us,cpu=0 veth1=busy-cpu:1ms,cpu=0", "nic=forwarder:1us,cpu=0 has the time of CPU 0 already"},
		{"the last CPU twice", Options{}, "nic=busy-cpu:1ms veth1=busy-cpu:1ms", "nic=busy-cpu:1ms has the time of CPU "},
		{"no such CPU", Options{}, "nic=forwarder:1us,cpu=1023", "CPU 1023 cannot be used"},
		{"two queues", Options{}, "nic=tbf:1ms nic=netem:1ms", "nic=tbf:1ms has the queueing discipline of nic already"},
		{"two forwarders", Options{}, "nic=forwarder:1ms remote=forwarder:1ms", "nic=forwarder:1ms has the cable of nic0 already"},
		{"a forwarder has no NAPI", Options{}, "c1=forwarder:1ms veth1=busy-cpu:1ms", "c1=forwarder:1ms has the cable of veth1 already"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			options := tt.options
			for _, text := range strings.Fields(tt.delays) {
				d, err := ParseDelay(text)
				if err != nil {
					t.Fatal(err)
				}
				options.Delays = append(options.Delays, d)
			}
			err := options.Check()
			if tt.wantErr == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), tt.wantErr) {
				t.Errorf("got %v, want an ErrInvalid with %q", err, tt.wantErr)
			}
		})
	}
}

var (
	timePattern  = regexp.MustCompile(`time=([0-9.]+) ms`)
	totalPattern = regexp.MustCompile(` time ([0-9]+)ms`)
)

// shortestPing returns the shortest round trip of pings from c1. They are single ones: for the last of several, ping does
// not wait for long.
func shortestPing(t *testing.T, l *Lab, address string) time.Duration {
	t.Helper()
	shortest := math.Inf(1)
	for range 5 {
		out := run(t, l, "c1", "ping", "-n", "-W5", "-c1", address)
		if fields := timePattern.FindStringSubmatch(out); fields != nil {
			ms, _ := strconv.ParseFloat(fields[1], 64)
			shortest = min(shortest, ms)
		}
	}
	if math.IsInf(shortest, 1) {
		t.Fatalf("ping of %s prints no time", address)
	}
	return time.Duration(shortest * float64(time.Millisecond))
}

// atOnce pings so many times from c1, again when the answer has come, and returns the time from the first request to the
// last.
func atOnce(t *testing.T, l *Lab, address string, count int) time.Duration {
	t.Helper()
	out := run(t, l, "c1", "ping", "-A", "-q", "-n", "-W5", "-c", strconv.Itoa(count), address)
	fields := totalPattern.FindStringSubmatch(out)
	if fields == nil {
		t.Fatalf("ping of %s says\n%s", address, out)
	}
	ms, _ := strconv.Atoi(fields[1])
	return time.Duration(ms) * time.Millisecond
}

// No packet is faster than its delay, whatever else the machine does.
func TestDelays(t *testing.T) {
	// Of pings that one tbf lets pass per 3 ms, the first finds a token and ping does not wait for the last; it rounds down.
	const pings, spaced = 20, (20-2)*3*time.Millisecond - time.Millisecond
	for _, tt := range []struct {
		delay        string
		network      Network
		wantShortest time.Duration // of a round trip
		wantTotal    time.Duration // of pings that follow each other
		processes    int
	}{
		{"nic=forwarder:3ms", NetworkBridge, 6 * time.Millisecond, 0, 1},
		{"remote=forwarder:3ms,cpu=0", NetworkMacvlan, 6 * time.Millisecond, 0, 1},
		{"c1=forwarder:3ms", NetworkBridge, 6 * time.Millisecond, 0, 1},
		{"veth1=forwarder:300us,cpu=0", NetworkVXLAN, 600 * time.Microsecond, 0, 1},
		{"nic=tbf:3ms", NetworkBridge, 0, spaced, 0},
		{"remote=tbf:3ms", NetworkVXLAN, 0, spaced, 0},
		{"c1=tbf:3ms", NetworkMacvlan, 0, spaced, 0},
		{"veth1=tbf:3ms", NetworkBridge, 0, spaced, 0},
		{"c1=busy-cpu:4ms", NetworkBridge, 0, 0, 1},
		{"remote=busy-cpu:4ms,cpu=0", NetworkMacvlan, 0, 0, 1},
		{"host=nft-rules:250", NetworkBridge, 0, 0, 0},
		{"host=nft-rules:250", NetworkVXLAN, 0, 0, 0},
	} {
		t.Run(tt.delay+" on "+string(tt.network), func(t *testing.T) {
			d, err := ParseDelay(tt.delay)
			if err != nil {
				t.Fatal(err)
			}
			l := up(t, Options{Network: tt.network, Delays: []Delay{d}})
			processes := recorded(t, l)
			if len(processes) != tt.processes {
				t.Errorf("processes %v, want %d", processes, tt.processes)
			}
			for _, address := range []string{l.RemoteAddr4().String(), l.RemoteAddr6().String()} {
				if got := shortestPing(t, l, address); got < tt.wantShortest {
					t.Errorf("a ping of %s lasts %s, want %s or more", address, got, tt.wantShortest)
				}
				if tt.wantTotal == 0 {
					continue
				}
				if got := atOnce(t, l, address, pings); got < tt.wantTotal {
					t.Errorf("%d pings of %s last %s, want %s or more", pings, address, got, tt.wantTotal)
				}
			}
			if d.By == DelayByRules {
				for _, family := range []string{"ip", "ip6"} {
					listing := run(t, l, Host, "nft", "list", "chain", family, "tare", "delay")
					if n := strings.Count(listing, "drop"); n != d.Rules {
						t.Errorf("%d rules in %s, want %d", n, family, d.Rules)
					}
				}
			}
			if err := l.Down(); err != nil {
				t.Fatal(err)
			}
			waitEnded(t, processes)
		})
	}
}

// netem is a module that kernels may lack; then it is said, and nothing stays.
func TestNetem(t *testing.T) {
	options := Options{Name: testLabName(), Delays: []Delay{{At: "veth1", By: DelayByNetem, Time: 3 * time.Millisecond}}}
	l, err := Up(context.Background(), options)
	if errors.Is(err, errors.ErrUnsupported) {
		if !strings.Contains(err.Error(), "sch_netem") {
			t.Errorf("%v does not name the module", err)
		}
		checkNothingLeft(t, options.Name)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Down(); err != nil {
			t.Error(err)
		}
		checkNothingLeft(t, l.Name())
	})
	for _, address := range []string{l.RemoteAddr4().String(), l.RemoteAddr6().String()} {
		if shortest := shortestPing(t, l, address); shortest < options.Delays[0].Time {
			t.Errorf("a ping of %s lasts %s, want 3 ms at least", address, shortest)
		}
	}
}

// Large segments pass a forwarder whole, as they pass a veth.
func TestForwarderCarriesStreams(t *testing.T) {
	l := up(t, Options{Containers: 2, Delays: []Delay{{At: "nic", By: DelayByForwarder}, {At: "c2", By: DelayByForwarder}}})
	before := nicBytes(t, l)
	load, err := l.StartBackground(context.Background(), Background{TCP: true})
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); nicBytes(t, l)-before < 20<<20; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("less than 20 megabytes leave by the NIC")
		}
	}
	if err := load.Stop(); err != nil {
		t.Error(err)
	}
	if processes := recorded(t, l); len(processes) != 2 {
		t.Errorf("processes %v, want the two forwarders, which the end of the load must not forget", processes)
	}
}
