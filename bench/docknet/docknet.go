// Package docknet measures DockNet against the kernel's networks: the same program, over kernel sockets and over DockLib,
// in interleaved rounds.
package docknet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tare/bench"
	"tare/stats"
)

// Sizes are the message sizes, in bytes.
var Sizes = []int{64, 1024, 65536}

const (
	// HTTPConnections are the kept-alive connections of a busy HTTP client, each with one request under way. Besides, one alone is
	// measured: that is what rows and target are about.
	HTTPConnections = 64
	// OpenConnections is how many are open where the latency of one among many is measured.
	OpenConnections = 1000
)

// Options say how long to measure.
type Options struct {
	Rounds   int           // at most; at least one is run
	Measure  time.Duration // each single measurement
	Budget   time.Duration // no round is begun that would end after this; 0: no limit
	Seed     uint64        // of the order of arms
	Daemon   string        // path of dockdaemon; looked for if empty
	Bench    string        // path of docknet-bench; looked for beside dockdaemon if empty
	Arms     []string      // all of ArmNames if empty; they always include bridge and docknet
	Progress func(bench.Progress)
}

// Quick fits into 45 s with setting up, and Full into ten minutes.
var (
	Quick = Options{Rounds: 10, Measure: 150 * time.Millisecond, Budget: 34 * time.Second}
	Full  = Options{Rounds: 8, Measure: 500 * time.Millisecond}
)

// Run measures. What it made is removed when it returns. The calling program must be tare: containers are made by its "net exec".
func Run(ctx context.Context, o Options) (result *Result, err error) {
	cpus, err := twoCPUs()
	if err != nil {
		return nil, err
	}
	lock, err := bench.TakeLock()
	if err != nil {
		return nil, err
	}
	defer lock.Release()
	r := &runner{Options: o, cpus: cpus, began: time.Now()}
	if r.programs, err = findPrograms(o); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	r.progress("setting up", 0)
	if err := r.setUp(ctx); err != nil {
		return nil, err
	}
	if err := r.measureIdle(ctx); err != nil {
		return nil, err
	}
	if err := r.runRounds(ctx); err != nil {
		return nil, err
	}
	return r.result(), nil
}

type runner struct {
	Options
	programs programs
	cpus     [2]int
	links    []*link
	missing  map[string]string
	idle     Idle
	rounds   []round
	began    time.Time
}

// round holds what each cell measured.
type round map[cell]sample

// cell is one measurement of a round.
type cell struct {
	arm       string
	placement Placement
	size      int
	http      bool
	open      int // connections
}

func (r *runner) progress(doing string, done float64) {
	if r.Progress == nil {
		return
	}
	p := bench.Progress{Doing: doing, Done: done}
	if done > 0 {
		p.Left = time.Duration(float64(time.Since(r.began)) / done * (1 - done))
	}
	r.Progress(p)
}

// cells are a round's measurements in blocks; within one, arms are shuffled, so that those compared follow each other closely.
func cells() (blocks []cell) {
	for _, placement := range Placements {
		for _, size := range Sizes {
			blocks = append(blocks, cell{placement: placement, size: size, open: 1})
		}
	}
	return append(blocks,
		cell{placement: TwoCores, size: Sizes[0], open: OpenConnections},
		cell{placement: TwoCores, size: Sizes[0], open: 1, http: true},
		cell{placement: TwoCores, size: Sizes[0], open: HTTPConnections, http: true})
}

func (r *runner) runRounds(ctx context.Context) error {
	order := stats.NewOrder(len(r.links), r.Seed)
	began := time.Now()
	var longest time.Duration
	for n := range max(r.Rounds, 1) {
		if n > 0 && r.Budget > 0 && time.Since(began)+longest > r.Budget {
			return nil
		}
		roundBegan := time.Now()
		round, err := r.round(ctx, n, order)
		if err != nil {
			return err
		}
		r.rounds = append(r.rounds, round)
		longest = max(longest, time.Since(roundBegan))
	}
	return nil
}

func (r *runner) round(ctx context.Context, n int, order *stats.Order) (round, error) {
	result := round{}
	blocks := cells()
	for b, c := range blocks {
		for _, i := range order.Next() {
			c.arm = r.links[i].arm
			done := (float64(n) + float64(b)/float64(len(blocks))) / float64(r.Rounds)
			if r.Budget > 0 {
				done = max(done, float64(time.Since(r.began))/float64(r.Budget+5*time.Second))
			}
			r.progress(fmt.Sprintf("round %d: %s, %s, %d bytes", n+1, c.arm, c.placement, c.size), min(done, 0.99))
			s, err := r.links[i].run(ctx, c, r.Measure)
			if err != nil {
				return nil, fmt.Errorf("measuring %s (%s, %d bytes): %w", c.arm, c.placement, c.size, err)
			}
			result[c] = s
		}
	}
	return result, context.Cause(ctx)
}
