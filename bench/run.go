package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"tare/bench/arm"
	"tare/bench/environment"
	"tare/bench/load"
	"tare/bench/report"
	"tare/bench/verdict"
)

// ErrNothing is returned where not one comparison can be made here.
var ErrNothing = errors.New("there is nothing to measure")

// runner is one benchmark under way.
type runner struct {
	Options
	ctx    context.Context
	began  time.Time
	report *report.Report
	arms   []chosenArm
	done   int // experiments
	total  int
}

// chosenArm is an arm that can run here.
type chosenArm struct {
	ArmSpec
	arm.Arm
}

// Name is what the report calls it.
func (c chosenArm) Name() string { return c.label() }

// Run measures. An interrupted measurement is a report, too, marked as partial. An error means that there is none.
func Run(ctx context.Context, o Options) (*report.Report, error) {
	o.fill()
	lock, err := TakeLock()
	if err != nil {
		return nil, err
	}
	defer lock.Release()
	// Servers are to die with this program, which to the kernel means: with the thread that started them. Go ends a thread
	// when some goroutine has made it unfit for others, as entering a namespace does. This one stays.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	r := &runner{Options: o, ctx: ctx, began: time.Now()}
	r.report = &report.Report{
		TareVersion: o.Version, Command: o.Command, Started: r.began.UTC().Truncate(time.Second), Seed: o.Seed,
		Method: report.Method{
			RoundSeconds: o.Round.Seconds(), Level: verdict.DefaultLevel, Looks: 1, Margin: o.Margin, FlagRules: report.FlagRules, Preset: o.Preset,
		},
	}
	if o.UntilDecided {
		r.report.Method.Looks, r.report.Method.Level = MaxLooks, verdict.LookLevel(MaxLooks)
	}
	if err := r.chooseArms(); err != nil {
		return nil, err
	}
	plan, err := r.plan()
	if err != nil {
		return nil, err
	}
	var tools []string
	for _, p := range plan {
		tools = append(tools, p.workload.Tools...)
	}
	r.report.Environment = environment.Read(ctx, unique(tools))
	watch := environment.StartWatch()
	err = r.runAll(plan)
	watch.Into(&r.report.Environment)
	r.report.Seconds = time.Since(r.began).Round(time.Millisecond).Seconds()
	r.report.Analyse()
	if err != nil && !r.measured() {
		return nil, err
	}
	if err != nil && r.report.Partial == "" {
		r.report.Partial = err.Error()
	}
	return r.report, nil
}

// measured is whether any round is worth a report.
func (r *runner) measured() bool {
	for _, e := range r.report.Experiments {
		if len(e.Rounds) > 0 {
			return true
		}
	}
	return false
}

// chooseArms finds out which arms can run here.
func (r *runner) chooseArms() error {
	for i, spec := range r.Arms {
		found, err := findArm(r.KnownArms, spec.Name)
		if err == nil && found.Check != nil {
			if err = found.Check(r.ctx); err != nil {
				err = fmt.Errorf("the arm %s cannot run here: %w", spec.Name, err)
				if i > 0 && spec.Optional {
					r.report.LeftOut = append(r.report.LeftOut, report.LeftOut{Name: spec.label(), Reason: errors.Unwrap(err).Error()})
					continue
				}
			}
		}
		if err != nil {
			return err
		}
		r.arms = append(r.arms, chosenArm{spec, found})
	}
	if len(r.arms) < 2 {
		reasons := ""
		for _, left := range r.report.LeftOut {
			reasons += fmt.Sprintf("; %s: %s", left.Name, left.Reason)
		}
		return fmt.Errorf("%w: no arm besides %s can run here%s", ErrNothing, r.arms[0].Name(), reasons)
	}
	return nil
}

func findArm(known []arm.Arm, name string) (arm.Arm, error) {
	var names []string
	for _, a := range known {
		if a.Name == name {
			return a, nil
		}
		names = append(names, a.Name)
	}
	return arm.Arm{}, fmt.Errorf("%w: no arm is named %q: there are %s", ErrUsage, name, strings.Join(names, ", "))
}

// planned is one experiment to be made.
type planned struct {
	workload  load.Workload
	params    load.Params
	placement report.Placement
	singleRun bool
}

// plan is every workload at every placement.
func (r *runner) plan() ([]planned, error) {
	var all []planned
	for _, name := range r.Placements {
		where, err := placement(name, environment.CPUs())
		if err != nil {
			return nil, err
		}
		if r.Softirq != nil {
			where.SoftirqCPU = *r.Softirq
		}
		for _, spec := range r.Workloads {
			workload, err := r.findWorkload(spec)
			if err != nil && spec.Optional {
				r.report.LeftOut = append(r.report.LeftOut, report.LeftOut{Name: spec.Name, Reason: err.Error()})
				continue
			}
			if err != nil {
				return nil, err
			}
			size := spec.Size
			if size == 0 {
				size = workload.DefaultSize
			}
			if size < workload.MinSize || size > workload.MaxSize {
				return nil, fmt.Errorf("%w: %d bytes with %s: %d to %d are possible", ErrUsage, size, workload.Name, workload.MinSize, workload.MaxSize)
			}
			if spec.Rate > 0 && !workload.Paced {
				return nil, fmt.Errorf("%w: %s takes no rate", ErrUsage, workload.Name)
			}
			p := planned{workload: workload, params: load.Params{Size: size, Rate: spec.Rate}, placement: where}
			if r.SingleRun {
				single := p
				single.singleRun = true
				all = append(all, single)
			}
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: no workload can run here", ErrNothing)
	}
	r.total = len(all)
	return all, nil
}

// ErrUsage marks options that do not go together.
var ErrUsage = errors.New("not possible")

func (r *runner) findWorkload(spec Workload) (load.Workload, error) {
	var names []string
	var first error
	for _, w := range r.KnownWorkloads {
		names = append(names, w.Name)
		if spec.Name != "" && w.Name != spec.Name || spec.Name == "" && w.Unit != load.RTT {
			continue
		}
		err := error(nil)
		if w.Check != nil {
			err = w.Check(r.ctx)
		}
		if err == nil {
			return w, nil
		}
		if first == nil {
			first = fmt.Errorf("the workload %s cannot run here: %w", w.Name, err)
		}
	}
	if first != nil {
		return load.Workload{}, first
	}
	return load.Workload{}, fmt.Errorf("%w: no workload is named %q: there are %s", ErrUsage, spec.Name, strings.Join(names, ", "))
}

// runAll makes the experiments, one after the other.
func (r *runner) runAll(plan []planned) error {
	var failed error
	for i, p := range plan {
		r.done = i
		err := r.experiment(p)
		if r.ctx.Err() != nil {
			r.report.Partial = r.interruption()
			return errors.New(r.report.Partial)
		}
		if err != nil {
			// Others may work: an iperf3 that is not understood says nothing about ping.
			failed = errors.Join(failed, fmt.Errorf("%s, %s: %w", p.workload.Name, p.placement.Name, err))
		}
	}
	return failed
}

func (r *runner) interruption() string {
	rounds := 0
	for _, e := range r.report.Experiments {
		rounds += len(e.Rounds)
	}
	return fmt.Sprintf("interrupted in experiment %d of %d, after %d rounds", r.done+1, r.total, rounds)
}

func unique(names []string) (once []string) {
	seen := map[string]bool{}
	for _, name := range names {
		if !seen[name] {
			seen[name] = true
			once = append(once, name)
		}
	}
	return once
}
