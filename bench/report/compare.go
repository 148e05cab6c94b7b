package report

import (
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"tare/bench/environment"
	"tare/bench/load"
	"tare/stats"
)

// ErrUnlike is returned for reports whose figures do not compare.
var ErrUnlike = errors.New("cannot be compared")

// Named is a report and what people call it, its file's name.
type Named struct {
	Name string
	*Report
}

// LoadNamed reads reports from files.
func LoadNamed(paths []string) ([]Named, error) {
	var all []Named
	for _, path := range paths {
		r, err := Load(path)
		if err != nil {
			return nil, err
		}
		all = append(all, Named{strings.TrimSuffix(filepath.Base(path), Suffix), r})
	}
	return all, nil
}

// Key is what experiments of two reports must have in common.
type Key struct {
	Workload  string
	Unit      load.Unit
	SizeBytes int
	Rate      int
	Placement string
	Baseline  string
}

// Key is what this experiment is.
func (e *Experiment) Key() Key {
	return Key{e.Workload, e.Unit, e.SizeBytes, e.Rate, e.Placement.Name, e.Baseline}
}

// String is a key in words.
func (k Key) String() string {
	text := k.Workload
	if k.SizeBytes > 0 {
		text += fmt.Sprintf(", %d bytes", k.SizeBytes)
	}
	if k.Rate > 0 {
		text += fmt.Sprintf(", %d per second", k.Rate)
	}
	return fmt.Sprintf("%s (%s), %s, against %s", text, k.Unit, k.Placement, k.Baseline)
}

func (r *Report) find(k Key) *Experiment {
	for i := range r.Experiments {
		if e := &r.Experiments[i]; e.Style != SingleRun && e.Key() == k {
			return e
		}
	}
	return nil
}

// CommonKeys are the experiments that all reports have; ErrUnlike says why there are none, or why their figures do not
// compare.
func CommonKeys(all []Named) ([]Key, error) {
	var keys []Key
	for i := range all[0].Experiments {
		e := &all[0].Experiments[i]
		if e.Style == SingleRun || slices.Contains(keys, e.Key()) {
			continue
		}
		everywhere := true
		for _, r := range all[1:] {
			everywhere = everywhere && r.find(e.Key()) != nil
		}
		if everywhere {
			keys = append(keys, e.Key())
		}
	}
	for _, r := range all[1:] {
		if changes := environment.ToolChanges(all[0].Environment, r.Environment); len(changes) > 0 {
			return nil, fmt.Errorf("%s and %s %w: %s is %q in one and %q in the other", all[0].Name, r.Name, ErrUnlike, changes[0].What, changes[0].A, changes[0].B)
		}
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s %w: %s", names(all), ErrUnlike, whyNoneInCommon(all))
	}
	return keys, nil
}

func names(all []Named) string {
	var list []string
	for _, r := range all {
		list = append(list, r.Name)
	}
	return strings.Join(list, ", ")
}

func whyNoneInCommon(all []Named) string {
	var parts []string
	for _, r := range all {
		var keys []string
		for i := range r.Experiments {
			if r.Experiments[i].Style != SingleRun {
				keys = append(keys, r.Experiments[i].Key().String())
			}
		}
		if len(keys) == 0 {
			keys = []string{"no interleaved rounds"}
		}
		parts = append(parts, r.Name+" has "+strings.Join(keys, "; "))
	}
	return "units, sizes, placements or baselines differ: " + strings.Join(parts, ". ")
}

// WriteComparison compares reports: two of them arm by arm, more as a matrix with a row for each.
func WriteComparison(out io.Writer, all []Named) error {
	keys, err := CommonKeys(all)
	if err != nil {
		return err
	}
	t := &text{out: out}
	for _, r := range all {
		if r.Partial != "" {
			t.line("%s is a PARTIAL REPORT: %s", r.Name, r.Partial)
		}
	}
	for i, key := range keys {
		if i > 0 {
			t.line("")
		}
		t.line("%s", key)
		if len(all) == 2 {
			t.table(comparePair(all[0], all[1], key))
			t.line("  In us unless it says otherwise. B less A: [95%% interval over rounds, of rounds that are not paired]")
		} else {
			t.table(matrix(all, key))
		}
	}
	for _, r := range all[1:] {
		t.line("\nWhat differs between %s and %s, and may matter:", all[0].Name, r.Name)
		rows := [][]string{}
		for _, change := range environment.Changes(all[0].Environment, r.Environment) {
			rows = append(rows, []string{change.What, clip(change.A) + " -> " + clip(change.B), change.Why})
		}
		if len(rows) == 0 {
			rows = append(rows, []string{"nothing that a report knows of"})
		}
		t.table(rows)
	}
	return t.err
}

// clip keeps a long value, such as a kernel's command line, from filling the screen.
func clip(s string) string {
	const longest = 48
	if r := []rune(s); len(r) > longest {
		return string(r[:longest-3]) + "..."
	}
	return s
}

// comparePair has one row per arm: what it costs in either report, and the change.
func comparePair(a, b Named, key Key) [][]string {
	one, other := a.find(key), b.find(key)
	rows := [][]string{{"arm", "A: " + a.Name, "B: " + b.Name, "B less A"}}
	for _, arm := range one.Arms {
		if !slices.ContainsFunc(other.Arms, func(x Arm) bool { return x.Name == arm.Name }) {
			continue
		}
		x, y := one.resultOf(arm.Name), other.resultOf(arm.Name)
		if arm.Name == key.Baseline {
			rows = append(rows, []string{arm.Name + " itself", one.own(x), other.own(y), ""})
			continue
		}
		change := stats.BootstrapUnpaired(other.Differences(arm.Name), one.Differences(arm.Name), stats.Median, a.Seed)
		verdict := ""
		if change.Rounds >= MinComparedRounds {
			verdict = "  no change seen"
			if change.Low > 0 || change.High < 0 {
				verdict = "  changed"
			}
		}
		rows = append(rows, []string{arm.Name + " more than it", one.against(x), other.against(y), one.Amount(change) + verdict})
	}
	return rows
}

// MinComparedRounds are too few for a bootstrap that means something.
const MinComparedRounds = 8

func (e *Experiment) resultOf(arm string) Result {
	for _, r := range e.Results {
		if r.Arm == arm {
			return r
		}
	}
	return Result{}
}

// own is the arm's own figure.
func (e *Experiment) own(r Result) string {
	if len(r.Statistics) == 0 {
		return "-"
	}
	return e.Value(r.Statistics[0])
}

func (e *Experiment) against(r Result) string {
	c := r.Comparison()
	if c == nil || math.IsNaN(c.Difference.Estimate) {
		return "-"
	}
	return e.Amount(c.Difference)
}

// matrix has a row per report and a column per arm.
func matrix(all []Named, key Key) [][]string {
	var arms []string
	for _, r := range all {
		for _, arm := range r.find(key).Arms {
			if arm.Name != key.Baseline && arm.Name != r.find(key).Again && !slices.Contains(arms, arm.Name) {
				arms = append(arms, arm.Name)
			}
		}
	}
	head := []string{"kernel", "report", key.Baseline}
	for _, arm := range arms {
		head = append(head, arm+" more")
	}
	rows := [][]string{head}
	for _, r := range all {
		e := r.find(key)
		row := []string{r.Environment.Kernel, r.Name, e.own(e.resultOf(key.Baseline))}
		for _, arm := range arms {
			row = append(row, e.against(e.resultOf(arm)))
		}
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows[1:], func(a, b []string) int { return compareKernels(a[0], b[0]) })
	return rows
}
