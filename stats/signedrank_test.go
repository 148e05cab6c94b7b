package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestSignedRank(t *testing.T) {
	// Darwin's maize, 15 pairs (The Effects of Cross and Self Fertilisation, 1876), in eighths of an inch. R's
	// wilcox.test(x, conf.int = TRUE) uses the normal approximation here, because of ties; these are counted: of the 120
	// Walsh averages the 26th from either end (W <= 25 has probability 0.0240).
	darwin := []float64{49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48}
	got := SignedRank(darwin, 0.95)
	want := Interval{Estimate: 25, Low: 4, High: 41.5, Level: 0.952, Rounds: 15}
	if math.Abs(got.Estimate-want.Estimate) > 0.01 || math.Abs(got.Level-want.Level) > 0.001 || got.Low != want.Low || got.High != want.High || got.Rounds != 15 {
		t.Errorf("%+v, want %+v", got, want)
	}
	below, above := 0, 0
	for _, average := range walshAverages(darwin) {
		if average < got.Low {
			below++
		}
		if average > got.High {
			above++
		}
	}
	if below > 25 || above > 25 || below < 20 || above < 20 {
		t.Errorf("%d averages lie below and %d above of %v, want about 25", below, above, got)
	}
}

func TestSignedRankLevels(t *testing.T) {
	for _, tt := range []struct {
		rounds int
		level  float64
		want   float64 // 1 - 2 P(W < bound), from tables of the signed-rank test
	}{
		{1, 0.95, 0},
		{5, 0.95, 0.9375},
		{6, 0.95, 0.96875},
		{8, 0.95, 0.9609375},
		{10, 0.95, 0.951171875},
		{6, 0.99, 0.96875}, // six rounds do not allow more
		{8, 0.99, 0.9921875},
		{200, 0.95, 0.95},
	} {
		values := make([]float64, tt.rounds)
		for i := range values {
			values[i] = float64(i)
		}
		got := SignedRank(values, tt.level)
		if math.Abs(got.Level-tt.want) > 1e-9 {
			t.Errorf("%d rounds, %.2f: level %.6f, want %.6f", tt.rounds, tt.level, got.Level, tt.want)
		}
		if got.Low > got.Estimate || got.High < got.Estimate {
			t.Errorf("%d rounds: %+v", tt.rounds, got)
		}
	}
	if none := SignedRank([]float64{math.NaN()}, 0.95); none.Rounds != 0 {
		t.Errorf("of nothing: %+v", none)
	}
}

// The normal approximation goes on where counting ends.
func TestSignedRankApproximation(t *testing.T) {
	exact, _ := signedRankBound(exactRounds, 0.95)
	after, _ := signedRankBound(exactRounds+1, 0.95)
	if step := after - exact; step < 40 || step > 80 { // half of n+1, less a little
		t.Errorf("%d averages outside at %d rounds, %d at one more", exact, exactRounds, after)
	}
}

func TestSignedRankHoldsItsLevel(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	const trials = 2000
	for _, n := range []int{6, 8, 12, 30} {
		misses := 0
		for range trials {
			rounds := make([]float64, n)
			for i := range rounds {
				// Differences of two draws of one skewed, drifting distribution: what equal arms give on a busy machine.
				spread := 1 + float64(i%3)
				rounds[i] = spread * (random.ExpFloat64() - random.ExpFloat64())
			}
			if got := SignedRank(rounds, 0.95); got.Low > 0 || got.High < 0 {
				misses++
			}
		}
		if share := float64(misses) / trials; share > 0.06 { // 0.05 and two standard errors
			t.Errorf("%d rounds: 0 outside in %.3f of the trials", n, share)
		}
	}
}

func TestBootstrapUnpaired(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	sample := func(n int, mean float64) []float64 {
		values := make([]float64, n)
		for i := range values {
			values[i] = mean + random.NormFloat64()
		}
		return values
	}
	got := BootstrapUnpaired(sample(40, 13), sample(30, 10), Median, 1)
	if got.Low > 3 || got.High < 3 || got.High-got.Low > 2 || got.Rounds != 30 {
		t.Errorf("%+v, want about 3", got)
	}
	if none := BootstrapUnpaired(nil, []float64{1}, Median, 1); none.Rounds != 0 {
		t.Errorf("against nothing: %+v", none)
	}
}
