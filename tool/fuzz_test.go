package tool

import (
	"bytes"
	"io"
	"math"
	"path/filepath"
	"strings"
	"testing"
)

// fuzz feeds what the tools of an archive print, and worse, to a parser, and
// holds that
//   - nothing that comes out is absurd,
//   - the tool's bytes come out unchanged and in order, and
//   - how the bytes are cut into writes makes no difference.
func fuzz(f *testing.F, parser func() Parser, archives ...string) {
	for _, archive := range archives {
		_, runs := readRuns(f, filepath.Join("testdata", archive+".txtar"))
		for _, r := range runs {
			f.Add([]byte(r.parts["stdout"]+r.parts["stderr"]), uint8(7))
		}
	}
	f.Add([]byte(strings.Repeat("(", 3000)+"\n"+strings.Repeat(" [<- ] ", 1000)+" : \n"), uint8(1))
	f.Add([]byte("\r\r\r\n\r\b \x00\xff ms\n"), uint8(2))
	f.Fuzz(func(t *testing.T, data []byte, size uint8) {
		run := func(size int) string {
			var out bytes.Buffer
			a := NewAnnotator(parser(), fakeLookup())
			a.OnReply = func(r Reply, _ Correction) {
				if !(r.RTTUs >= 0) || !(r.ResolutionUs > 0) || math.IsInf(r.RTTUs, 0) || r.Seq < -1 || r.Probe < -1 ||
					r.Port < 0 || r.Port > 65535 || len(r.Target) > maxName {
					t.Fatalf("%+v", r)
				}
			}
			a.OnStats = func(st Stats, _ Report) {
				if !(st.MinUs >= 0 && st.AvgUs >= 0 && st.MaxUs >= 0 && st.MdevUs >= 0) || st.Received < 0 || st.Sent < 0 {
					t.Fatalf("%+v", st)
				}
			}
			s := a.Stream(&out)
			for rest := data; len(rest) > 0; rest = rest[min(size, len(rest)):] {
				if _, err := s.Write(rest[:min(size, len(rest))]); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			a.Close()
			return out.String()
		}
		whole := run(math.MaxInt)
		if cut := run(int(size) + 1); cut != whole {
			t.Fatalf("in pieces of %d:\n%q\nwhole:\n%q", int(size)+1, cut, whole)
		}
		rest := whole
		for _, b := range data { // the input is a subsequence of the output
			i := strings.IndexByte(rest, b)
			if i < 0 {
				t.Fatalf("lost %q of\n%q in\n%q", b, data, whole)
			}
			rest = rest[i+1:]
		}
	})
}

func FuzzParsePing(f *testing.F) {
	fuzz(f, func() Parser { return new(ping) }, "ping", "busybox")
}

func FuzzParseFping(f *testing.F) {
	fuzz(f, func() Parser { return newFping([]string{"-C", "3"}) }, "fping")
}

func FuzzParseFpingTerse(f *testing.F) {
	fuzz(f, func() Parser { return newFping([]string{"-a", "-e", "-C3"}) }, "fping")
}

func FuzzParseTraceroute(f *testing.F) {
	fuzz(f, func() Parser { return newTraceroute("traceroute", []string{"-I"}, false) }, "traceroute", "busybox")
}

func FuzzFor(f *testing.F) {
	f.Add("env A=1 timeout -k 1 5 traceroute -q3 -nI --first 2 -- x")
	f.Add("fping -qC3 -e x")
	f.Fuzz(func(t *testing.T, argv string) {
		if p, ok := For(strings.Split(argv, " ")); ok {
			p.Parse("traceroute to x (10.78.0.2), 30 hops max")
			p.Parse(" 1  x (10.78.0.1)  0.1 ms * 0.2 ms")
			p.Finish()
		}
	})
}

// BenchmarkHostileLine is to show a cost per byte that does not grow with the line.
func BenchmarkHostileLine(b *testing.B) {
	for name, unit := range map[string]string{
		"parentheses": "(", "arrows": " [<- ] ", "stars": " *", "times": " 1 ms", "slashes": "/", "commas": "1, ", "CRs": "\r",
	} {
		for _, n := range []int{1 << 10, MaxLine - 200} {
			for tool, head := range map[string]string{"ping": "PING x", "fping": " [<- ", "traceroute": "1 "} {
				line := []byte(head + strings.Repeat(unit, n/len(unit)) + " : 1\n")
				b.Run(name+"/"+tool+"/"+map[bool]string{true: "1K", false: "64K"}[n == 1<<10], func(b *testing.B) {
					parser, _ := For([]string{tool, "-C1"})
					parser.Parse("traceroute to x (10.78.0.2), 30 hops max")
					s := NewAnnotator(parser, fakeLookup()).Stream(io.Discard)
					b.SetBytes(int64(len(line)))
					for b.Loop() {
						s.Write(line)
					}
				})
			}
		}
	}
}
