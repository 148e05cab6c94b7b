package docknet

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestParseSample(t *testing.T) {
	s, err := parseSample([]byte(`{"size":64,"oneway_us":{"p50":3.25,"p99":40.00},"goodput_mbytes_s":null,"requests_s":106000.00}` + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	if *s.OnewayUs.P50 != 3.25 || *s.OnewayUs.P99 != 40 || s.Goodput != nil || *s.Requests != 106000 {
		t.Errorf("%+v", s)
	}
	if _, err := parseSample([]byte("usage: docknet-bench")); err == nil || !strings.Contains(err.Error(), `"usage: docknet-bench"`) {
		t.Errorf("no result gives %v", err)
	}
}

func f(v float64) *float64 { return &v }

// measured makes a round of each pair of one-way times, the bridge's and DockNet's. Goodput and requests follow from them.
func measured(pairs ...[2]float64) (rounds []round) {
	for _, pair := range pairs {
		r := round{}
		for i, arm := range []string{Bridge, DockNet} {
			for _, c := range cells() {
				c.arm = arm
				s := sample{}
				switch {
				case c.http:
					s.Requests = f(1e6 / pair[i])
				default:
					s.OnewayUs.P50, s.OnewayUs.P99 = f(pair[i]), f(2*pair[i])
					if c.open == 1 {
						s.Goodput = f(float64(c.size) / pair[i])
					}
				}
				r[c] = s
			}
		}
		rounds = append(rounds, r)
	}
	return rounds
}

func TestRowsAreMediansAndPairedRatios(t *testing.T) {
	// Medians 20 and 10; the rounds' own ratios are 2, 4 and 1: their median is 2, not 20/10 by chance only.
	rounds := measured([2]float64{10, 5}, [2]float64{40, 10}, [2]float64{20, 20})
	row := newRow(rounds, DockNet, TwoCores, 64)
	if *row.OnewayUs.P50 != 10 || *row.OnewayUs.P99 != 20 || *row.RatioToBridge != 2 || *row.GoodputToBridge != 2 || *row.RequestsRatio != 2 {
		t.Errorf("%s", encoded(t, row))
	}
	rounds = measured([2]float64{10, 5}, [2]float64{40, 10}, [2]float64{100, 20})
	if row := newRow(rounds, DockNet, OneCore, 1024); *row.OnewayUs.P50 != 10 || *row.RatioToBridge != 4 || row.Requests != nil {
		t.Errorf("%s", encoded(t, row))
	}
	if row := newRow(rounds, Bridge, OneCore, 1024); *row.RatioToBridge != 1 {
		t.Errorf("the bridge's ratio to itself: %s", encoded(t, row))
	}
	if row := newRow(rounds, OVS, TwoCores, 64); row.OnewayUs.P50 != nil || row.RatioToBridge != nil {
		t.Errorf("an arm that was not measured: %s", encoded(t, row))
	}
}

func encoded(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func resultOf(rounds []round) *Result {
	r := &runner{rounds: rounds, links: []*link{{arm: Bridge}, {arm: DockNet}}, missing: map[string]string{OVS: "ovs-vsctl is not installed"},
		idle: Idle{DaemonPercent: 0.01, ContainerPercent: 0.3}}
	return r.result()
}

func TestTargets(t *testing.T) {
	verdicts := func(r *Result) string {
		text := ""
		for _, target := range r.Targets {
			if target.Met {
				text += "+"
			} else {
				text += "-"
			}
		}
		return text
	}
	// Latency 4x, goodput 4x (2 wanted, and 15), HTTP 4x of 8; 4 us on one core and 4x; as many connections as one; idle.
	if got, want := verdicts(resultOf(measured([2]float64{16, 4}))), "++--++++-"; got != want {
		t.Errorf("4 times better: %s, want %s", got, want)
	}
	if got, want := verdicts(resultOf(measured([2]float64{96, 6}))), "++++-+++-"; got != want {
		t.Errorf("16 times better, 6 us: %s, want %s", got, want)
	}
	if got, want := verdicts(resultOf(nil)), "-------+-"; got != want {
		t.Errorf("nothing measured: %s, want %s", got, want)
	}
}

func TestJSON(t *testing.T) {
	var got map[string]any
	if err := json.Unmarshal([]byte(encoded(t, resultOf(measured([2]float64{16, 4})))), &got); err != nil {
		t.Fatal(err)
	}
	rows := got["rows"].([]any)
	if len(rows) != 6 || len(got["one_core_rows"].([]any)) != 6 || len(got["connections"].([]any)) != 2 || len(got["http"].([]any)) != 4 {
		t.Fatalf("%v", got)
	}
	row := rows[3].(map[string]any)
	want := []string{"arm", "goodput_mbytes_s", "goodput_ratio_to_bridge", "oneway_us", "placement", "ratio_to_bridge", "requests_ratio_to_bridge", "requests_s", "size"}
	if keys := slices.Sorted(maps.Keys(row)); !slices.Equal(keys, want) {
		t.Errorf("keys %v, want %v", keys, want)
	}
	if row["arm"] != "docknet" || row["size"] != 64.0 || row["ratio_to_bridge"] != 4.0 ||
		row["oneway_us"].(map[string]any)["p99"] != 8.0 {
		t.Errorf("%v", row)
	}
}

func TestText(t *testing.T) {
	var out bytes.Buffer
	if err := resultOf(measured([2]float64{16, 4})).WriteText(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"medians of 1 interleaved rounds",
		"docknet     64            4.00   8.00      4.00     16      4.00  250000      4.00",
		"docknet  65536            4.00   8.00      4.00  16384      4.00       -         -",
		"docknet  1000     64            4.00   8.00     1.00",
		"ovs cannot be measured here: ovs-vsctl is not installed",
		"  met      64 B one-way, two cores, below the bridge",
		"  NOT MET  HTTP requests/s on one connection, above the bridge    4.00 times        (at least 8 times)",
		"docknet           64  250000      4.00",
		"  NOT MET  idle container                                         0.30 % of a core  (at most 0.2 % of a core)",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("missing: %s\nin:\n%s", want, &out)
		}
	}
}

func TestCheckArms(t *testing.T) {
	for _, c := range []struct {
		arms []string
		want string
	}{
		{nil, ""},
		{[]string{"docknet", "bridge"}, ""},
		{[]string{"docknet", "bridge", "veth"}, `no arm is named "veth": there are [loopback bridge ovs docknet]`},
		{[]string{"loopback", "docknet"}, "bridge and docknet must be among them"},
	} {
		err := CheckArms(c.arms)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.arms, err, c.want)
		}
	}
}

func TestFindBench(t *testing.T) {
	dir := t.TempDir()
	daemon := filepath.Join(dir, "daemon", "dockdaemon")
	t.Setenv("PATH", dir)
	if _, err := findBench(daemon); !errors.Is(err, ErrNotBuilt) || !strings.Contains(err.Error(), daemon) {
		t.Errorf("no program: %v", err)
	}
	for _, place := range []string{"apps/docknet-bench", "daemon/docknet-bench"} { // the later one is nearer
		path := filepath.Join(dir, place)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o755)); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(daemon), 0o755); err != nil {
			t.Fatal(err)
		}
		if got, err := findBench(daemon); err != nil || got != path {
			t.Errorf("%s: %s, %v", place, got, err)
		}
	}
}

func TestCPUTime(t *testing.T) {
	before, err := cpuTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for i, end := 0, 0; i < 50_000_000; i++ {
		end += i
	}
	after, err := cpuTime(os.Getpid())
	if err != nil || after <= before {
		t.Errorf("%s, then %s, %v", before, after, err)
	}
	if _, err := cpuTime(1 << 30); err == nil {
		t.Error("a process that there is not has a CPU time")
	}
}
