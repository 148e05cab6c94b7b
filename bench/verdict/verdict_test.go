package verdict

import (
	"math"
	"math/rand/v2"
	"testing"

	"tare/stats"
)

// around gives n values around centre, alternately above and below by up to spread.
func around(n int, centre, spread float64) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = centre + spread*float64(1+i%3)/3*float64(1-i%2*2)
	}
	return values
}

func constant(n int, v float64) []float64 { return around(n, v, 0) }

func TestCompare(t *testing.T) {
	rule := Rule{Level: 0.95, Margin: Margin{Share: 0.02}}
	for _, tt := range []struct {
		name      string
		arm, base []float64
		floor     float64
		rule      Rule
		want      Kind
	}{
		{"slower", around(12, 21.8, 0.1), constant(12, 20.5), 0.05, rule, Slower},
		{"faster", around(12, 19, 0.1), constant(12, 20.5), 0.05, rule, Faster},
		{"within the margin", around(12, 20.5, 0.1), constant(12, 20.5), 0.05, rule, Equivalent},
		{"different, but within the margin", around(12, 20.7, 0.01), constant(12, 20.5), 0.05, rule, Equivalent},
		{"different, and no margin", around(12, 20.7, 0.01), constant(12, 20.5), 0.05, Rule{Level: 0.95}, Slower},
		{"too noisy", around(12, 20.6, 3), constant(12, 20.5), 0.05, rule, Inconclusive},
		{"below the noise floor", around(12, 21.8, 0.1), constant(12, 20.5), 2, rule, Inconclusive},
		{"five rounds have no 95% interval", constant(5, 30), constant(5, 20), 0, rule, Inconclusive},
		{"six have", constant(6, 30), constant(6, 20), 0, rule, Slower},
		{"no rounds", nil, nil, 0, rule, Inconclusive},
		{"a margin in the values' unit", around(12, 20.7, 0.01), constant(12, 20.5), 0, Rule{Level: 0.95, Margin: Margin{Amount: 0.3}}, Equivalent},
		{"beyond that", around(12, 20.9, 0.01), constant(12, 20.5), 0, Rule{Level: 0.95, Margin: Margin{Amount: 0.3}}, Slower},
		{"a lower rate", around(12, 900, 5), constant(12, 1000), 5, Rule{Level: 0.95, Margin: Margin{Share: 0.02}, HigherIsBest: true}, Slower},
		{"a higher rate", around(12, 1100, 5), constant(12, 1000), 5, Rule{Level: 0.95, Margin: Margin{Share: 0.02}, HigherIsBest: true}, Faster},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := Compare(tt.arm, tt.base, tt.floor, tt.rule)
			if got.Kind != tt.want {
				t.Errorf("%+v, want %s", got, tt.want)
			}
			if got.Kind != Inconclusive && got.MoreRounds != 0 {
				t.Errorf("decided, and yet %d more rounds", got.MoreRounds)
			}
		})
	}
}

// Pairs with a value that is none do not count, and do not shift the others.
func TestCompareLeavesOutWhatIsNoNumber(t *testing.T) {
	arm, base := constant(9, 30), constant(9, 20)
	arm[2], base[5], base[7] = math.NaN(), 0, math.NaN()
	got := Compare(arm, base, 0, Rule{Level: 0.95})
	if got.Difference.Rounds != 6 || got.Difference.Estimate != 10 || got.Ratio.Rounds != 6 || got.Kind != Slower {
		t.Errorf("%+v", got)
	}
}

// The estimate of further rounds must be of the right size: with so many, most measurements are decided.
func TestMoreRounds(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	rule := Rule{Level: 0.95, Margin: Margin{Share: 0.01}}
	draw := func(n int) (arm, base []float64) {
		for range n {
			arm = append(arm, 20.3+random.NormFloat64()*0.5)
			base = append(base, 20)
		}
		return arm, base
	}
	asked, decided := 0, 0
	for range 100 {
		arm, base := draw(8)
		c := Compare(arm, base, 0, rule)
		if c.Kind != Inconclusive || c.MoreRounds == 0 {
			continue
		}
		asked++
		if c.MoreRounds > 300 {
			t.Errorf("%d more rounds: some 10 are needed", c.MoreRounds)
		}
		arm, base = draw(8 + c.MoreRounds*2)
		if Compare(arm, base, 0, rule).Kind != Inconclusive {
			decided++
		}
	}
	if asked < 20 || decided*10 < asked*6 {
		t.Errorf("with twice as many more as were said, %d of %d were decided", decided, asked)
	}
}

func TestNoiseFloor(t *testing.T) {
	again := Comparison{Difference: stats.Interval{Estimate: -0.01, Low: -0.07, High: 0.02, Rounds: 20}}
	if got := NoiseFloor(again); got != 0.07 {
		t.Errorf("%v", got)
	}
	if got := NoiseFloor(Comparison{}); got != 0 {
		t.Errorf("of nothing: %v", got)
	}
}

func TestLookLevel(t *testing.T) {
	if LookLevel(1) != 0.95 || math.Abs(LookLevel(5)-0.99) > 1e-12 {
		t.Errorf("%v, %v", LookLevel(1), LookLevel(5))
	}
}
