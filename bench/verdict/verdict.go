// Package verdict says what paired rounds of two arms allow to be said: one is slower, they are equivalent within a margin,
// or the rounds do not suffice.
//
// The sample is the round. Each round gives one value per arm (its median, say), the values of a round are paired, and the
// interval over the paired differences is stats.SignedRank's. A difference must exceed the noise floor as well: what a
// second copy of the baseline, measured in the same rounds, differs from the first.
package verdict

import (
	"fmt"
	"math"

	"tare/stats"
)

// Kind is what can be said.
type Kind string

// The kinds. Slower and Faster speak of cost: of a rate, "slower" means that the arm's is the lower one.
const (
	Slower       Kind = "slower"
	Faster       Kind = "faster"
	Equivalent   Kind = "equivalent" // the interval lies inside the margin, whether or not it holds zero
	Inconclusive Kind = "inconclusive"
)

// DefaultLevel is the intervals' level.
const DefaultLevel = 0.95

// Margin is how much of a difference nobody minds: a share of the baseline, or an amount in the values' own unit.
type Margin struct {
	Share  float64 `json:"share,omitempty"`
	Amount float64 `json:"amount,omitempty"`
}

// Rule is fixed before the first round.
type Rule struct {
	Level         float64 // of the intervals
	Margin        Margin
	HigherIsBest  bool // the values are rates
	MaxMoreRounds int  // beyond so many, no number of further rounds is given; 0: 100,000
}

// Comparison is an arm against its baseline.
type Comparison struct {
	Kind       Kind           `json:"verdict"`
	Difference stats.Interval `json:"difference"` // arm less baseline, in the values' unit
	Ratio      stats.Interval `json:"ratio"`      // arm over baseline
	Floor      float64        `json:"noise_floor"`
	// MoreRounds is about how many further rounds would decide, where these do not; 0: they do, or nobody can say.
	MoreRounds int `json:"more_rounds,omitempty"`
}

// Compare compares an arm with its baseline, round by round; both have one value per round, in the same order. The floor
// is NoiseFloor's, 0 where none is known. Both arms' values must be positive numbers, as times and rates are; pairs with
// others do not count.
func Compare(arm, baseline []float64, floor float64, rule Rule) Comparison {
	differences, logs := stats.Differences(arm, baseline), stats.Ratios(arm, baseline)
	for i, ratio := range logs {
		logs[i] = math.Log(ratio)
		if math.IsNaN(logs[i]) || math.IsInf(logs[i], 0) {
			logs[i], differences[i] = math.NaN(), math.NaN()
		}
	}
	c := Comparison{Difference: stats.SignedRank(differences, rule.Level), Floor: floor}
	// Of the logarithms, so that a over b and b over a give the same interval, turned over.
	c.Ratio = stats.SignedRank(logs, rule.Level)
	if c.Ratio.Rounds > 0 {
		for _, v := range []*float64{&c.Ratio.Estimate, &c.Ratio.Low, &c.Ratio.High} {
			*v = math.Exp(*v)
		}
	}
	c.Kind = c.kind(rule)
	if c.Kind == Inconclusive {
		c.MoreRounds = c.moreRounds(rule)
	}
	return c
}

func (c Comparison) kind(rule Rule) Kind {
	d := c.Difference
	if d.Rounds == 0 || d.Level < rule.Level-1e-9 {
		return Inconclusive // so few rounds have no interval of this level
	}
	if c.insideMargin(rule.Margin) {
		return Equivalent
	}
	if math.Abs(d.Estimate) <= c.Floor || d.Low <= 0 && d.High >= 0 {
		return Inconclusive
	}
	if (d.Estimate > 0) != rule.HigherIsBest {
		return Slower
	}
	return Faster
}

// insideMargin is a test of equivalence by two one-sided tests. With 95% intervals each has a level of 2.5%, half of what
// is usual: who relies on "equivalent" is not to be disappointed.
func (c Comparison) insideMargin(m Margin) bool {
	if m.Amount > 0 {
		return c.Difference.Low > -m.Amount && c.Difference.High < m.Amount
	}
	return m.Share > 0 && c.Ratio.Low > 1-m.Share && c.Ratio.High < 1+m.Share
}

// moreRounds supposes that the estimate stays and the interval narrows with the root of the number of rounds.
func (c Comparison) moreRounds(rule Rule) int {
	limit := rule.MaxMoreRounds
	if limit == 0 {
		limit = 100_000
	}
	i, zero, margin := c.Difference, 0.0, rule.Margin.Amount
	if margin == 0 {
		i, zero, margin = c.Ratio, 1, rule.Margin.Share
	}
	if i.Rounds == 0 {
		return 0
	}
	const enough = 8 // rounds; fewer give no interval to reckon with
	if c.Difference.Level < rule.Level-1e-9 {
		return max(1, enough-i.Rounds)
	}
	half, effect := (i.High-i.Low)/2, math.Abs(i.Estimate-zero)
	// It ends when the interval no longer holds zero, or lies inside of the margin, whichever is easier.
	needed := math.Max(effect, margin-effect)
	if needed <= 0 || half <= 0 {
		return 0
	}
	more := math.Ceil(float64(i.Rounds) * (half*half/(needed*needed) - 1))
	if more > float64(limit) {
		return 0
	}
	// The floor shrinks with more rounds as well, so what it hides now takes some more rounds at least.
	return max(2, int(more))
}

// NoiseFloor is what the second copy of the baseline says about differences that are none: the farther end of its
// interval.
func NoiseFloor(again Comparison) float64 {
	if again.Difference.Rounds == 0 {
		return 0
	}
	return math.Max(math.Abs(again.Difference.Low), math.Abs(again.Difference.High))
}

// LookLevel is the level that intervals must have when a measurement may be looked at so many times and stops at the first
// verdict: each look has its share of the 5% (Bonferroni). Without it, looking often enough finds a difference anywhere.
func LookLevel(looks int) float64 { return 1 - (1-DefaultLevel)/float64(max(1, looks)) }

// String is the margin as a person writes it, in the unit of the values.
func (m Margin) String() string {
	if m.Amount > 0 {
		return fmt.Sprintf("%.4g", m.Amount)
	}
	return fmt.Sprintf("%.4g%%", m.Share*100)
}
