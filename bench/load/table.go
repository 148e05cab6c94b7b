package load

import (
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"tare/bench/arm"
)

var table []ranked

type ranked struct {
	Workload
	rank int
}

// register adds a workload to the table. Ranks give the order in which they are listed.
func register(rank int, w Workload) { table = append(table, ranked{w, rank}) }

// All returns every workload, round-trip times first.
func All() []Workload {
	sorted := slices.Clone(table)
	slices.SortStableFunc(sorted, func(a, b ranked) int { return cmp.Compare(a.rank, b.rank) })
	all := make([]Workload, len(sorted))
	for i, w := range sorted {
		all[i] = w.Workload
	}
	return all
}

// Find returns the workload of that name.
func Find(name string) (Workload, error) {
	var names []string
	for _, w := range All() {
		if w.Name == name {
			return w, nil
		}
		names = append(names, w.Name)
	}
	return Workload{}, fmt.Errorf("no workload is named %q: there are %s", name, strings.Join(names, ", "))
}

// withDefaults fills in what was left out and refuses what the workload cannot do.
func (p Params) withDefaults(w Workload) (Params, error) {
	p.Port = cmp.Or(p.Port, arm.DefaultPort)
	p.Size = cmp.Or(p.Size, w.DefaultSize)
	if p.Size < w.MinSize || p.Size > w.MaxSize {
		if w.MaxSize == 0 {
			return p, fmt.Errorf("workload %s has no message size to choose", w.Name)
		}
		return p, fmt.Errorf("workload %s with messages of %d bytes: %d to %d are possible", w.Name, p.Size, w.MinSize, w.MaxSize)
	}
	if p.Rate < 0 || p.Rate > 0 && !w.Paced {
		return p, fmt.Errorf("workload %s at %d messages per second: it sends each as soon as the last was answered", w.Name, p.Rate)
	}
	return p, nil
}

// needTools is the Check of workloads that run the distribution's tools. The names of Debian's packages are those of the
// tools, but for the ones given here.
func needTools(names ...string) func(context.Context) error {
	packages := map[string]string{"nginx": "nginx-light", "ping": "iputils-ping"}
	return func(context.Context) error {
		for _, name := range names {
			if _, err := exec.LookPath(name); err != nil {
				return fmt.Errorf("%s is not installed: apt-get install %s", name, cmp.Or(packages[name], name))
			}
		}
		return nil
	}
}
