package report

import (
	"fmt"
	"math"
)

// Attribution is where the packets of one arm spent their time, by traced rounds that are not among the others.
type Attribution struct {
	Arm string `json:"arm"`
	// RoundTripUs is the mean of the traced rounds, of which the hops and the unexplained rest are parts.
	RoundTripUs float64 `json:"round_trip_us"`
	// TracerUs is what of it the tracer itself took; it is in the hops.
	TracerUs float64 `json:"tracer_us"`
	Packets  int     `json:"packets"`
	Hops     []Hop   `json:"hops"`
}

// Hop is one part of the way.
type Hop struct {
	Name      string  `json:"name"`
	Direction string  `json:"direction"` // request or reply
	MeanUs    float64 `json:"mean_us"`   // per round trip
}

// UnexplainedUs is what of the round trip lies in no hop.
func (a Attribution) UnexplainedUs() float64 {
	rest := a.RoundTripUs
	for _, hop := range a.Hops {
		rest -= hop.MeanUs
	}
	return rest
}

// Share is how one hop adds to an arm's difference from the baseline.
type Share struct {
	Name         string
	DifferenceUs float64
}

// Shares splits an arm's difference from the baseline by hop, in the arm's order; hops that only the baseline has, with
// a minus sign, after them; the rest that no hop explains comes last. They add up to the whole difference of the traced
// rounds. It is nil where either was not traced.
func (e *Experiment) Shares(arm string) []Share {
	own, baseline := e.attribution(arm), e.attribution(e.Baseline)
	if own == nil || baseline == nil || arm == e.Baseline {
		return nil
	}
	type key struct{ name, direction string }
	had := map[key]float64{}
	for _, hop := range baseline.Hops {
		had[key{hop.Name, hop.Direction}] += hop.MeanUs
	}
	var shares []Share
	for _, hop := range own.Hops {
		k := key{hop.Name, hop.Direction}
		shares = append(shares, Share{hop.Name + ", " + hop.Direction, hop.MeanUs - had[k]})
		delete(had, k)
	}
	for _, hop := range baseline.Hops {
		k := key{hop.Name, hop.Direction}
		if us, only := had[k]; only {
			shares = append(shares, Share{hop.Name + ", " + hop.Direction, -us})
			delete(had, k)
		}
	}
	return append(shares, Share{"unexplained", own.UnexplainedUs() - baseline.UnexplainedUs()})
}

func (e *Experiment) attribution(arm string) *Attribution {
	for i := range e.Attributions {
		if e.Attributions[i].Arm == arm {
			return &e.Attributions[i]
		}
	}
	return nil
}

// attributionTable has the shares of every arm that was traced.
func (e *Experiment) attributionTable() (rows [][]string) {
	for _, arm := range e.Arms {
		shares := e.Shares(arm.Name)
		if shares == nil {
			continue
		}
		whole := 0.0
		for _, share := range shares {
			whole += share.DifferenceUs
		}
		rows = append(rows, []string{arm.Name, fmt.Sprintf("%+.2f us", whole), fmt.Sprintf("of which the tracer %+.2f us", e.attribution(arm.Name).TracerUs-e.attribution(e.Baseline).TracerUs)})
		for _, share := range shares {
			if math.Abs(share.DifferenceUs) >= 0.005 {
				rows = append(rows, []string{"  " + share.Name, fmt.Sprintf("%+.2f us", share.DifferenceUs), ""})
			}
		}
	}
	return rows
}
