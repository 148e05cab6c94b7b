package bench

import (
	"context"
	"fmt"

	"tare/bench/arm"
	"tare/bench/report"
	"tare/stats"
)

// Explainer follows an arm's packets through the kernel while a round runs. It is how --explain is to attach a tracer:
// this package knows none.
type Explainer interface {
	// Trace follows what link carries while during runs, and returns during's error if there is one. It is called several
	// times for each arm, and adds up.
	Trace(ctx context.Context, arm string, link *arm.Link, during func() error) error
	// Attribution is what was seen of an arm; false where its packets could not be followed.
	Attribution(arm string) (report.Attribution, bool)
}

// explainRounds are traced, after all others: a tracer's cost must not be in what is compared.
const explainRounds = 4

// explain runs traced rounds in interleaved order, of which nothing is kept but where the time went.
func (e *experiment) explain() error {
	if e.Explain == nil {
		return nil
	}
	order := stats.NewOrder(len(e.entries), e.Seed+1)
	for n := range explainRounds {
		for _, i := range order.Next() {
			x := e.entries[i]
			if x.failed || x.label() == e.report.Again {
				continue
			}
			e.progress(fmt.Sprintf("traced round %d of %d: %s", n+1, explainRounds, x.Name()), 1, 0)
			err := e.Explain.Trace(e.ctx, x.Name(), x.link, func() error {
				_, err := e.run(x, e.Round)
				return err
			})
			if err != nil {
				if err := e.fail(i, fmt.Errorf("in a traced round: %w", err)); err != nil {
					return err
				}
			}
		}
	}
	for _, x := range e.entries {
		if a, ok := e.Explain.Attribution(x.Name()); ok {
			a.Arm = x.Name()
			e.report.Attributions = append(e.report.Attributions, a)
		}
	}
	return nil
}
