package eval

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tare/container"
	"tare/lab"
	"tare/mace"
	"tare/subtract"
)

// These tests need root, and fail without it. They check what is measured, never how long it took.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "run" || os.Args[1] == "--help") {
		os.Exit(asTare(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// asTare stands in for the program that the lifecycle starts.
func asTare(argv []string) int {
	if argv[0] == "--help" {
		return 0
	}
	target, err := container.FromNetNS(argv[2]) // run --netns PATH -- COMMAND...
	if err == nil {
		var path mace.Path
		if path, err = mace.ParsePath("bare-metal"); err == nil {
			err = subtract.Run(context.Background(), subtract.RunOptions{
				Options: subtract.Options{Target: target, Path: path}, Argv: argv[4:], As: "bare-metal", Stdout: os.Stdout, Stderr: os.Stderr,
			})
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// evaluate runs one part with next to nothing to do.
func evaluate(t *testing.T, options Options) *Report {
	t.Helper()
	// An interrupted test takes its lab down.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	t.Cleanup(stop)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	options.tiny, options.Seed, options.Program, options.Command = true, 1, program, "tare eval test"
	report, err := Run(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	checkNothingLeft(t)
	checkReport(t, report)
	return report
}

func checkNothingLeft(t *testing.T) {
	t.Helper()
	own := fmt.Sprintf("eval-%d-", os.Getpid())
	names, err := lab.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasPrefix(name, own) {
			t.Errorf("lab %s is left behind", name)
		}
	}
	tracing, err := openTracefs()
	if err != nil {
		t.Fatal(err)
	}
	defer tracing.close()
	left, _ := filepath.Glob(tracing.path("instances", fmt.Sprintf("%s%d-*", instancePrefix, os.Getpid())))
	if len(left) > 0 {
		t.Errorf("%d instances of ftrace are left behind", len(left))
	}
}

// checkReport looks for what every report must have, in both of its forms.
func checkReport(t *testing.T, report *Report) {
	t.Helper()
	dir := t.TempDir()
	if err := report.Save(dir); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, savedJSON))
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(raw, &fields); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"schema", "command", "started", "seconds", "seed", "machine", "targets"} {
		if _, ok := fields[key]; !ok {
			t.Errorf("the JSON form lacks %q", key)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, savedText))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{report.Machine.Kernel, report.Command, "Targets"} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("the text form lacks %q:\n%s", want, text)
		}
	}
	page, err := os.ReadFile(filepath.Join(dir, savedHTML))
	if err != nil {
		t.Fatal(err)
	}
	if got := bytes.Count(page, []byte("<svg")); got != len(report.Pictures()) || bytes.Contains(page, []byte("src=")) {
		t.Errorf("the page has %d figures, %d were drawn; or it loads something", got, len(report.Pictures()))
	}
	again, err := Read(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	var rendered bytes.Buffer
	if err := again.WriteText(&rendered); err != nil || !bytes.Equal(rendered.Bytes(), text) {
		t.Errorf("read again (%v), the report says something else:\n%s", err, rendered.Bytes())
	}
	for _, target := range report.Targets {
		if want := fmt.Sprintf("%s  ", target.Name); !bytes.Contains(text, []byte(want)) {
			t.Errorf("the text form lacks target %q", target.Name)
		}
	}
}

func TestAccuracy(t *testing.T) {
	report := evaluate(t, Options{Parts: []Part{PartAccuracy}, Rounds: 1, Floods: []int{1}})
	levels := report.Accuracy.Levels
	if len(levels) != 1 || levels[0].Floods != 1 {
		t.Fatalf("levels %+v", levels)
	}
	for _, level := range levels {
		b := level.BareMetal
		if len(b.RoundsNative) != 1 || len(b.RoundsAgain) != 1 || b.RoundsRaw[0].N != tinyReplies || b.RoundsNet[0].N == 0 {
			t.Errorf("%d floods: bare metal %+v", level.Floods, b)
		}
		if b.Coverage.Share <= 0.5 || b.Coverage.Share > 1 || b.Coverage.Received != tinyReplies {
			t.Errorf("%d floods: coverage of bare-metal %+v", level.Floods, b.Coverage)
		}
		// A correction can only take away.
		if b.CorrectedUs.Estimate >= b.ContainerUs.Estimate {
			t.Errorf("%d floods: corrected to %v from %v", level.Floods, b.CorrectedUs, b.ContainerUs)
		}
		if len(level.Wire) != len(wireTools) {
			t.Fatalf("%d floods: %d tools", level.Floods, len(level.Wire))
		}
		for _, w := range level.Wire {
			if w.Coverage.Share <= 0.5 || w.Coverage.Share > 1 || w.Compared == 0 || w.Compared > w.Coverage.Received {
				t.Errorf("%d floods: %s: %+v", level.Floods, w.Tool, w)
			}
		}
	}
}

func TestPayload(t *testing.T) {
	p := evaluate(t, Options{Parts: []Part{PartPayload}, Rounds: 2}).Payload
	if len(p.Sizes) != len(payloadBytes) {
		t.Fatalf("%d sizes", len(p.Sizes))
	}
	for _, s := range p.Sizes {
		if len(s.Native) != 2 || len(s.NativeAgain) != 2 || len(s.Container) != 2 || s.Container[0].N != tinyReplies {
			t.Errorf("%d bytes: %+v", s.Bytes, s)
		}
	}
}

func TestLoad(t *testing.T) {
	l := evaluate(t, Options{Parts: []Part{PartLoad}, Rounds: 1, Floods: []int{0, 2}}).Load
	if len(l.Levels) != 2 || l.Levels[1].Floods != 2 {
		t.Fatalf("%+v", l)
	}
	for _, level := range l.Levels {
		if len(level.Arms) != 3 {
			t.Fatalf("%d arms", len(level.Arms))
		}
		for _, a := range level.Arms {
			if a.Coverage.Received != tinyReplies || a.Coverage.Share < 0.5 || a.Coverage.Share > 1 || a.Rounds[0].N == 0 {
				t.Errorf("%d floods: %s: %+v", level.Floods, a.Arm, a)
			}
			// A correction can only take away.
			if a.MedianErrorUs.Estimate >= a.RawMedianErrorUs.Estimate {
				t.Errorf("%d floods: %s: corrected to an error of %v from %v", level.Floods, a.Arm, a.MedianErrorUs, a.RawMedianErrorUs)
			}
		}
	}
}

func TestPoster(t *testing.T) {
	p := evaluate(t, Options{Parts: []Part{PartPoster}, Rounds: 1}).Poster
	if len(p.Methods) != len(posterRows) || len(p.Series) == 0 {
		t.Fatalf("%d methods, %d points", len(p.Methods), len(p.Series))
	}
	for _, m := range p.Methods {
		if m.MeanUs.Rounds != 1 || m.MeanUs.Estimate == 0 || m.DeviationUs.Estimate < 0 {
			t.Errorf("%+v", m)
		}
	}
}

func TestMode(t *testing.T) {
	if got := mode([]float64{5.1, 7.2, 6.8, 7.4, 30}); got != 7 {
		t.Errorf("mode %v, want 7", got)
	}
}

func TestFalseMatches(t *testing.T) {
	f := evaluate(t, Options{Parts: []Part{PartFalseMatches}, Packets: 2000}).FalseMatches
	if f.FalseMatches != 0 || f.Packets+f.Unverifiable < 2000 || f.OtherPackets == 0 {
		t.Errorf("%+v", f)
	}
	if f.EgressAfterTapUs.N+f.IngressAfterTapUs.N != f.Packets {
		t.Errorf("%d and %d of %d packets have the tap's time beside theirs", f.EgressAfterTapUs.N, f.IngressAfterTapUs.N, f.Packets)
	}
}

func TestPerturbation(t *testing.T) {
	p := evaluate(t, Options{Parts: []Part{PartPerturbation}, Rounds: 1}).Perturbation
	if p.NoBpftrace != "" {
		t.Errorf("bpftrace does not run here: %s", p.NoBpftrace) // setup installs it
	}
	if len(p.Arms) != len(perturbationArms()) || p.BaseRTTUs.Rounds != 1 {
		t.Fatalf("%d arms, %d rounds", len(p.Arms), p.BaseRTTUs.Rounds)
	}
	for _, arm := range p.Arms {
		for _, round := range arm.Rounds {
			if round.N < 10*tinyReplies-1 || round.N > 10*tinyReplies {
				t.Errorf("%s has a round of %d packets", arm.Arm, round.N)
			}
		}
	}
	for _, cost := range p.Costs {
		// Two events on the way out and two on the way in, at least, are nobody's but the flood's.
		events := 0.0
		for _, program := range cost.Programs {
			events += program.EventsPerRTT
		}
		if events < 4 || cost.NSPerPacket <= 0 {
			t.Errorf("%s: %+v", cost.Arm, cost)
		}
	}
}

func TestLifecycle(t *testing.T) {
	l := evaluate(t, Options{Parts: []Part{PartLifecycle}, Rounds: 1}).Lifecycle
	if len(l.Paths) != len(lifecyclePaths) || len(l.StartMSRaw) != 1 || l.MemoryMiB.Estimate < 1 {
		t.Errorf("%+v", l)
	}
	for _, p := range l.Paths {
		if p.AttachMS.Estimate <= 0 || p.DetachMS.Estimate <= 0 {
			t.Errorf("%+v", p)
		}
	}
}

// An interrupt at any moment leaves nothing: the load is the most there is to clean up.
func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 1500*time.Millisecond)
	defer cancel()
	_, err := Run(ctx, Options{Parts: []Part{PartAccuracy}, Floods: []int{2}, Rounds: 1000})
	if err == nil || !strings.Contains(err.Error(), context.DeadlineExceeded.Error()) {
		t.Errorf("error %v, want that of its context", err)
	}
	checkNothingLeft(t)
}

func TestFloodsOutOfRange(t *testing.T) {
	_, err := Run(context.Background(), Options{Parts: []Part{PartAccuracy}, Floods: []int{MaxFloods + 1}})
	if err == nil || !strings.Contains(err.Error(), "flooding containers") {
		t.Errorf("error %v", err)
	}
}
