package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
)

// through runs text through a Stream of ping whose every reply had 6 us added.
func through(t testing.TB, text string, size int) string {
	t.Helper()
	var out bytes.Buffer
	a := NewAnnotator(new(ping), add6)
	s := a.Stream(&out)
	for rest := text; len(rest) > 0; rest = rest[min(size, len(rest)):] {
		if _, err := io.WriteString(s, rest[:min(size, len(rest))]); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	a.Close()
	return out.String()
}

func add6(r Reply) Correction {
	return Correction{AddedUs: 6, CorrectedUs: r.RTTUs - 6, OK: true}
}

func TestStream(t *testing.T) {
	const reply = "64 bytes from 10.78.0.2: icmp_seq=1 ttl=63 time=0.048 ms"
	const note = "  added=0.0060 ms  corrected=0.0420 ms"
	const counts = "1 packets transmitted, 1 received, 0% packet loss, time 0ms"
	const rtt = "rtt min/avg/max/mdev = 0.048/0.048/0.048/0.000 ms"
	const added = "added min/avg/max/mdev = 0.0060/0.0060/0.0060/0.0000 ms"
	const corrected = "corrected min/avg/max/mdev = 0.0420/0.0420/0.0420/0.0000 ms  (1 of 1 replies corrected)"
	long := strings.Repeat("x", MaxLine)
	tests := []struct{ name, in, want string }{
		{"nothing", "", ""},
		{"invalid UTF-8", "\xff\xfe\x00\n\xc3", "\xff\xfe\x00\n\xc3"},
		{"terminal", reply + "\r\n", reply + note + "\r\n"},
		{"CR of the tool's own on a terminal", reply + "\r\r\n", reply + note + "\r\r\n"},
		{"many CRs", reply + "\r\r\r\r\n", reply + "\r\r\r\r\n"},
		{"CR within", "junk\r" + reply + "\n", "junk\r" + reply + note + "\n"},
		{"CR at the end", "abc\r", "abc\r"},
		{"CRs alone", "\r\r\r\r\r\n\r", "\r\r\r\r\r\n\r"},
		{"no final newline", reply, reply + note},
		{"no final newline, no reply", "PING x", "PING x"},
		{"cut in a number", counts + "\nrtt min/avg/max/mdev = 0.048/0.048/0.048/0.00", counts + "\nrtt min/avg/max/mdev = 0.048/0.048/0.048/0.00"},
		{"statistics", reply + "\n" + counts + "\n" + rtt + "\n",
			reply + note + "\n" + counts + "\n" + rtt + "\n" + added + "\n" + corrected + "\n"},
		{"statistics on a terminal", reply + "\r\n" + counts + "\r\n" + rtt + "\r\n",
			reply + note + "\r\n" + counts + "\r\n" + rtt + "\r\n" + added + "\r\n" + corrected + "\r\n"},
		{"statistics without newline", reply + "\n" + counts + "\n" + rtt,
			reply + note + "\n" + counts + "\n" + rtt + "\n" + added + "\n" + corrected},
		{"dots", ".\b \b.\b \b..\n" + reply + "\n", ".\b \b.\b \b..\n" + reply + note + "\n"},
		{"too long", long + reply + "\n" + reply + "\n", long + reply + "\n" + reply + note + "\n"},
		{"long and no end", long + long, long + long},
		{"as long as can be", long + "\n", long + "\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for _, size := range []int{1, 3, 1 << 30} {
				if got := through(t, test.in, size); got != test.want {
					t.Errorf("in pieces of %d:\n got %.2000q\nwant %.2000q", size, got, test.want)
				}
			}
		})
	}
}

// The tool's text is not held back: neither by an incomplete line nor by a
// correction that takes its time.
func TestStreamIsPrompt(t *testing.T) {
	var out bytes.Buffer
	shown := ""
	a := NewAnnotator(newTraceroute("traceroute", nil, false), func(r Reply) Correction {
		shown = out.String()
		return add6(r)
	})
	s := a.Stream(&out)
	for _, part := range []string{"traceroute to x (10.78.0.2), 30 hops max, 60 byte packets", "\n 1  10.77.0.254  0.086 ms", "  0.049 ms", " *"} {
		before := out.String()
		io.WriteString(s, part)
		if got := out.String(); got != before+part {
			t.Fatalf("after %q there is %q", part, got)
		}
	}
	before := out.String()
	io.WriteString(s, "\n 2")
	if shown != before {
		t.Errorf("lookup was called with %q shown", shown)
	}
	if want := before + "  added 0.0060 0.0060 * ms  corrected 0.0800 0.0430 * ms\n 2"; out.String() != want {
		t.Errorf("got %q", out.String())
	}
}

func TestStreamWithoutText(t *testing.T) {
	var replies, stats int
	a := NewAnnotator(new(ping), add6)
	a.OnReply = func(Reply, Correction) { replies++ }
	a.OnStats = func(st Stats, r Report) {
		stats++
		if _, err := json.Marshal(r); err != nil || st.Received != 1 || r.Corrected != 1 {
			t.Errorf("%+v %+v: %v", st, r, err)
		}
	}
	s := a.Stream(nil)
	io.WriteString(s, "64 bytes from 10.78.0.2: icmp_seq=1 ttl=63 time=0.048 ms\n1 packets transmitted, 1 received, 0% packet loss, time 0ms\n")
	s.Close()
	if stats != 0 {
		t.Error("statistics before their end")
	}
	a.Close()
	if replies != 1 || stats != 1 {
		t.Errorf("%d replies, %d statistics", replies, stats)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("gone") }

func TestStreamToNowhere(t *testing.T) {
	a := NewAnnotator(new(ping), add6)
	s := a.Stream(failing{})
	if n, err := io.WriteString(s, "64 bytes from 10.78.0.2: icmp_seq=1 ttl=63 time=0.048 ms\n"); err == nil || n == 0 {
		t.Errorf("Write = %d, %v", n, err)
	}
	if a.Summary().Total().Corrected != 1 {
		t.Error("the reply is not counted")
	}
}

// Both outputs of a tool at once, and a reader of the summary; for -race.
func TestConcurrency(t *testing.T) {
	a := NewAnnotator(newFping([]string{"-C", "500"}), add6)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			s := a.Stream(io.Discard)
			for i := range 500 {
				fmt.Fprintf(s, "10.78.0.%d : [%d], 64 bytes, 0.0%d ms (0.1 avg, 0%% loss)\n", i%5, i, i%90+10)
			}
			s.Close()
		})
	}
	wg.Go(func() {
		for range 100 {
			a.Summary().Total()
		}
	})
	wg.Wait()
	if got := a.Summary().Total(); got.Replies != 1000 || got.Corrected != 1000 || len(a.Summary().Targets()) != 5 {
		t.Errorf("%+v", got)
	}
}
