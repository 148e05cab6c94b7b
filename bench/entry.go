package bench

import (
	"context"
	"errors"
	"fmt"
	"math"

	"tare/bench/arm"
	"tare/bench/load"
	"tare/bench/report"
)

// entry is an arm that takes part in an experiment: its network, and the workload on it.
type entry struct {
	chosenArm
	port    uint16
	link    *arm.Link
	session load.Session
	failed  bool
	misses  int // runs in a row without a sample
}

// maxMisses in a row are no accident.
const maxMisses = 3

// up makes the network and starts the workload.
func (x *entry) up(ctx context.Context, w load.Workload, p load.Params, where report.Placement) error {
	link, err := x.Up(ctx, arm.Options{
		ClientCPU: where.ClientCPU, ServerCPU: where.ServerCPU, SoftirqCPU: where.SoftirqCPU, Port: x.port, Delay: x.Delay,
	})
	if err != nil {
		return fmt.Errorf("making the network: %w", err)
	}
	x.link = link
	if err := x.start(ctx, w, p); err != nil {
		return errors.Join(err, x.close())
	}
	return nil
}

// start starts the server, and has neighbours resolved and caches filled before anything is measured.
func (x *entry) start(ctx context.Context, w load.Workload, p load.Params) error {
	p.Port = x.port
	session, err := w.Start(ctx, x.link, p)
	if err != nil {
		return fmt.Errorf("starting %s: %w", w.Name, err)
	}
	x.session = session
	if err := session.Warm(ctx); err != nil {
		return fmt.Errorf("warming %s up: %w", w.Name, err)
	}
	return nil
}

func (x *entry) restart(ctx context.Context, w load.Workload, p load.Params) error {
	session := x.session
	x.session = nil
	if err := session.Close(); err != nil {
		return fmt.Errorf("ending %s: %w", w.Name, err)
	}
	return x.start(ctx, w, p)
}

// close takes all of it down, however far it had come.
func (x *entry) close() (err error) {
	if x.session != nil {
		err = x.session.Close()
		x.session = nil
	}
	if x.link != nil {
		err = errors.Join(err, x.link.Close())
		x.link = nil
	}
	return err
}

// number is v, or 0 where it is none: JSON has no others.
func number(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return v
}
