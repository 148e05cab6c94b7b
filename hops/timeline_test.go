package hops

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

// traceFile is what ui.perfetto.dev reads: the JSON object format of the Trace Event Format.
type traceFile struct {
	DisplayTimeUnit string
	TraceEvents     []struct {
		Name, Ph, Cat string
		Ts, Dur       *float64
		Pid, Tid      *int
		Args          map[string]any
	}
}

func TestTimeline(t *testing.T) {
	_, l := usualReport(t)
	var text bytes.Buffer
	if err := l.Write(&text); err != nil {
		t.Fatal(err)
	}
	var file traceFile
	decoder := json.NewDecoder(&text)
	if err := decoder.Decode(&file); err != nil {
		t.Fatal(err)
	}
	type span struct{ from, to float64 }
	type lane struct{ pid, tid int }
	open := map[lane][]span{} // slices of a thread must nest: what begins inside another one ends inside it
	named := map[lane]bool{}
	packets, hops, subtracted := 0, 0, 0.0
	for _, e := range file.TraceEvents {
		if e.Pid == nil || e.Tid == nil || e.Name == "" {
			t.Fatalf("%+v has no process, thread or name", e)
		}
		at := lane{*e.Pid, *e.Tid}
		if e.Ph == "M" {
			named[at] = true
			if e.Args["name"] == nil && e.Args["sort_index"] == nil {
				t.Errorf("metadata without a value: %+v", e)
			}
			continue
		}
		if e.Ph != "X" || e.Ts == nil || e.Dur == nil || *e.Ts < 0 || *e.Dur < 0 {
			t.Fatalf("%+v is no complete event", e)
		}
		s := span{*e.Ts, *e.Ts + *e.Dur}
		const rounding = 1e-6 // of a decimal number of us that has whole ns
		for n := len(open[at]); n > 0 && open[at][n-1].to <= s.from+rounding; n = len(open[at]) {
			open[at] = open[at][:n-1]
		}
		if n := len(open[at]); n > 0 && s.to > open[at][n-1].to+rounding {
			t.Errorf("%s overlaps what is under way on its thread", e.Name)
		}
		switch e.Cat {
		case "packet":
			packets++
			if len(open[at]) > 0 {
				t.Errorf("packet %q begins within another one", e.Name)
			}
		case "hop":
			hops++
			if len(open[at]) != 1 {
				t.Errorf("hop %q lies within %d slices, want its packet", e.Name, len(open[at]))
			}
			if e.Args["subtracted"] == true {
				subtracted += *e.Dur
			}
		}
		open[at] = append(open[at], s)
	}
	if packets != 20 || hops != 9*9+9*9+5+1 {
		t.Errorf("%d packets and %d hops", packets, hops)
	}
	if want := 9*4.26 + 4.30 + 9*3.22; subtracted < want-0.01 || subtracted > want+0.01 {
		t.Errorf("hops marked as subtracted take %.3f us, want %.3f", subtracted, want)
	}
	for at := range open {
		if !named[at] {
			t.Errorf("thread %v has no name", at)
		}
	}
	if len(open) < 3 {
		t.Errorf("packets that are under way at the same time are on %d threads", len(open))
	}
}

// The file stays small enough to be opened, and says what it leaves out.
func TestTimelineBounds(t *testing.T) {
	l := NewTimeline("c")
	for i := range maxTimeline + 5 {
		l.Add(out(t, int64(i)*1e6))
	}
	var text bytes.Buffer
	if err := l.Write(&text); err != nil {
		t.Fatal(err)
	}
	if !json.Valid(text.Bytes()) || !strings.Contains(text.String()[:200], `"packets_left_out":5`) {
		t.Errorf("the file begins %s", text.String()[:200])
	}
	if text.Len() > 40<<20 {
		t.Errorf("%d bytes", text.Len())
	}
	text.Reset()
	if err := NewTimeline("nothing").Write(&text); err != nil || !json.Valid(text.Bytes()) {
		t.Errorf("without packets: %v, %s", err, &text)
	}
}

// The page stands for itself, whatever names devices and containers have.
func TestHTML(t *testing.T) {
	r, _ := usualReport(t)
	r.Container = `<script>alert("c1")</script>`
	r.Egress.Hops[2].Device = `<img src=x onerror=y>`
	var b bytes.Buffer
	if err := r.WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for _, never := range []string{"<script", "<img", "http:", "https:", "src=\"", "href=", "url(", "@import", "ZgotmplZ"} {
		if strings.Contains(text, never) {
			t.Errorf("the page has %q in it", never)
		}
	}
	for _, each := range []string{"netfilter, routing", "= correction", "unexplained", "net_dev_start_xmit@eth0 → net_dev_queue@nic0", "&lt;script&gt;"} {
		if !strings.Contains(text, each) {
			t.Errorf("the page lacks %q", each)
		}
	}
	if n := len(regexp.MustCompile(`class="bar" style="left:[0-9.]+%;width:[0-9.]+%"`).FindAllString(text, -1)); n != 18 {
		t.Errorf("%d bars, want 18", n)
	}
}
