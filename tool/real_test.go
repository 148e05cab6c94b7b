package tool

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the want sections of testdata")

// run is one real run of a tool, from a file of testdata.
type run struct {
	name  string
	parts map[string]string // argv, stdout, stderr, want
}

var partNames = []string{"argv", "stdout", "stderr", "want"}

var partHeader = regexp.MustCompile(`(?m)^-- ([\w-]+)/(\w+) --\n`)

// readRuns reads a file in the format of txtar: parts, each below a line
// "-- run/part --".
func readRuns(t testing.TB, file string) (comment string, runs []*run) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	headers := partHeader.FindAllStringSubmatchIndex(text, -1)
	for i, h := range headers {
		end := len(text)
		if i+1 < len(headers) {
			end = headers[i+1][0]
		}
		name, part := text[h[2]:h[3]], text[h[4]:h[5]]
		if part == "argv" {
			runs = append(runs, &run{name, make(map[string]string)})
		}
		runs[len(runs)-1].parts[part] = text[h[1]:end]
	}
	return text[:headers[0][0]], runs
}

func writeRuns(t testing.TB, file, comment string, runs []*run) {
	t.Helper()
	var b strings.Builder
	b.WriteString(comment)
	for _, r := range runs {
		for _, part := range partNames {
			if r.parts[part] != "" {
				fmt.Fprintf(&b, "-- %s/%s --\n%s", r.name, part, r.parts[part])
			}
		}
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// fakeLookup corrects four replies of five, by amounts that tell them apart.
func fakeLookup() func(Reply) Correction {
	n := 0
	return func(r Reply) Correction {
		n++
		if n%5 == 4 {
			return Correction{Status: "unfinished"}
		}
		added := 6.1 + float64(n)/10
		return Correction{AddedUs: added, CorrectedUs: r.RTTUs - added, OK: true}
	}
}

// annotate runs both outputs of a run through an Annotator in pieces of a size.
func annotate(t testing.TB, r *run, size int) (stdout, stderr string, log []string) {
	t.Helper()
	parser, ok := For(strings.Fields(r.parts["argv"]))
	if !ok {
		t.Fatalf("%q is not recognised", r.parts["argv"])
	}
	a := NewAnnotator(parser, fakeLookup())
	a.As = "bare-metal"
	a.Unprinted = func(st Stats) []float64 {
		added := make([]float64, st.Measured())
		for i := range added {
			added[i] = 6 + float64(i)/10
		}
		return added
	}
	a.OnReply = func(r Reply, c Correction) { log = append(log, describe(r)) }
	a.OnStats = func(st Stats, _ Report) { log = append(log, describeStats(st)) }
	var outs [2]bytes.Buffer
	for i, in := range []string{r.parts["stdout"], r.parts["stderr"]} {
		s := a.Stream(&outs[i])
		for len(in) > 0 {
			n := min(size, len(in))
			if got, err := s.Write([]byte(in[:n])); got != n || err != nil {
				t.Fatalf("Write = %d, %v", got, err)
			}
			in = in[n:]
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	a.Close()
	return outs[0].String(), outs[1].String(), log
}

// describe renders what was understood, briefly: fields in their zero state,
// and the target's address if it is its name, are left out.
func describe(r Reply) string {
	var b strings.Builder
	say := func(yes bool, format string, args ...any) {
		if yes {
			fmt.Fprintf(&b, format, args...)
		}
	}
	say(true, "%v us, to %.0f", r.RTTUs, r.ResolutionUs)
	say(r.Kind == Probe, ": hop %d probe %d", r.Hop, r.Probe)
	say(true, " %s seq %d", r.Proto, r.Seq)
	say(r.Port != 0, " port %d", r.Port)
	say(r.From.IsValid(), " from %v", r.From)
	say(true, " of %s", r.Target)
	say(r.TargetAddr.IsValid() && r.TargetAddr.String() != r.Target, " = %v", r.TargetAddr)
	say(r.Duplicate, " duplicate")
	say(r.Uncounted, " uncounted")
	return b.String()
}

func describeStats(st Stats) string {
	s := fmt.Sprintf("stats of %s: %d/%d, %d duplicates, %d errors", st.Target, st.Received, st.Sent, st.Duplicates, st.Errors)
	if st.HasRTT {
		s += fmt.Sprintf(", %v/%v/%v us", st.MinUs, st.AvgUs, st.MaxUs)
	}
	if st.HasMdev {
		s += fmt.Sprintf(" mdev %v", st.MdevUs)
	}
	if st.Interim {
		s += ", interim"
	}
	return s
}

func TestRealOutput(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) != 4 {
		t.Fatalf("archives: %v, %v", files, err)
	}
	for _, file := range files {
		comment, runs := readRuns(t, file)
		for _, r := range runs {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar")+"/"+r.name, func(t *testing.T) {
				stdout, stderr, log := annotate(t, r, 1<<20)
				got := stdout
				if stderr != "" {
					got += "(stderr)\n" + stderr
				}
				for _, l := range log {
					got += "> " + l + "\n"
				}
				if *update {
					r.parts["want"] = got
				}
				if want := r.parts["want"]; got != want {
					t.Errorf("got:\n%s\nwant:\n%s", got, want)
				}
				for _, size := range []int{1, 2, 7} {
					o, e, l := annotate(t, r, size)
					if o != stdout || e != stderr || fmt.Sprint(l) != fmt.Sprint(log) {
						t.Errorf("in pieces of %d it comes out otherwise:\n%s%s", size, o, e)
					}
				}
				if left := unannotated(stdout); left != r.parts["stdout"] {
					t.Errorf("without the annotations there is:\n%s\nthe tool wrote:\n%s", left, r.parts["stdout"])
				}
			})
		}
		if *update {
			writeRuns(t, file, comment, runs)
		}
	}
}

// unannotated takes the annotations off again.
func unannotated(s string) string {
	var kept []string
	for _, line := range strings.SplitAfter(s, "\n") {
		if strings.HasPrefix(line, "added ") || strings.HasPrefix(line, "corrected ") {
			continue
		}
		if i := strings.Index(line, "  added"); i >= 0 {
			line = line[:i] + "\n"
		}
		kept = append(kept, line)
	}
	return strings.Join(kept, "")
}
