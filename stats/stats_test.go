package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestQuantile(t *testing.T) {
	// Expected values are NumPy's: numpy.quantile(values, q).
	for _, tt := range []struct {
		name   string
		values []float64
		q      float64
		want   float64
	}{
		{"odd median", []float64{3, 1, 2}, 0.5, 2},
		{"even median", []float64{4, 1, 3, 2}, 0.5, 2.5},
		{"first", []float64{5, 7, 9}, 0, 5},
		{"last", []float64{5, 7, 9}, 1, 9},
		{"interpolated", []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 0.9, 9.1},
		{"one value", []float64{7}, 0.99, 7},
		{"beyond 1", []float64{1, 2}, 1.5, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := slices.Clone(tt.values)
			if got := Quantile(tt.values, tt.q); math.Abs(got-tt.want) > 1e-12 {
				t.Errorf("%v, want %v", got, tt.want)
			}
			if !slices.Equal(before, tt.values) {
				t.Error("the values' order was changed")
			}
		})
	}
	if !math.IsNaN(Median(nil)) || !math.IsNaN(Mean(nil)) {
		t.Error("the median or mean of nothing is a number")
	}
}

func TestMean(t *testing.T) {
	if got := Mean([]float64{1, 2, 6}); got != 3 {
		t.Errorf("%v, want 3", got)
	}
	// A plain sum of these loses the small ones altogether.
	values := []float64{1e16}
	for range 1000 {
		values = append(values, 1)
	}
	if got, want := Mean(values), (1e16+1000)/1001; got != want {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestMedianOfRounded(t *testing.T) {
	for _, tt := range []struct {
		name   string
		values []float64
		want   float64
	}{
		// By the textbook formula L + (n/2 - F) / f * w.
		{"in the middle of its group", []float64{1, 2, 2, 3}, 2},
		{"low in its group", []float64{1, 1, 2, 2, 2, 2, 2, 3}, 1.5 + (4.0-2)/5},
		{"all alike", []float64{5, 5, 5}, 5},
		{"between far groups", []float64{1, 9}, 5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := MedianOfRounded(tt.values, 1); math.Abs(got-tt.want) > 1e-12 {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
	// What it is for: rounding must not cost the median its fraction.
	random := rand.New(rand.NewPCG(1, 2))
	var rounded []float64
	for range 20000 {
		rounded = append(rounded, math.Round(12.3+random.NormFloat64()*2))
	}
	if got := MedianOfRounded(rounded, 1); math.Abs(got-12.3) > 0.06 { // 3 standard errors
		t.Errorf("%v, want about 12.3", got)
	}
}

func TestBootstrapCoversTheTruth(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	const trials = 400
	hits := 0
	for trial := range trials {
		rounds := make([]float64, 25)
		for i := range rounds {
			rounds[i] = 10 + random.NormFloat64()
		}
		interval := BootstrapMedian(rounds, uint64(trial))
		if interval.Low > interval.Estimate || interval.Estimate > interval.High {
			t.Fatalf("estimate outside of %v", interval)
		}
		if interval.Low <= 10 && 10 <= interval.High {
			hits++
		}
	}
	// Nominally 95%; 25 rounds give the percentile bootstrap a little less. The seeds are fixed, so is the outcome.
	if share := float64(hits) / trials; share < 0.90 || share > 0.99 {
		t.Errorf("%.3f of the intervals hold the true median, want about 0.95", share)
	}
}

func TestBootstrapIsReproducible(t *testing.T) {
	rounds := []float64{1, 5, 2, 8, 3, 9, 4}
	if a, b := BootstrapMedian(rounds, 7), BootstrapMedian(rounds, 7); a != b {
		t.Errorf("%v and %v from the same seed", a, b)
	}
	if one := BootstrapMedian([]float64{3}, 1); one.Low != 3 || one.High != 3 || one.Rounds != 1 {
		t.Errorf("one round gives %+v", one)
	}
	if none := BootstrapMedian(nil, 1); none.Rounds != 0 || none.String() != "-" {
		t.Errorf("no rounds give %+v", none)
	}
}

func TestPairs(t *testing.T) {
	a, b := []float64{5, 7, 4}, []float64{2, 3, 0}
	if got := Differences(a, b); !slices.Equal(got, []float64{3, 4, 4}) {
		t.Errorf("differences %v", got)
	}
	if got := Ratios(a, b); got[0] != 2.5 || !math.IsNaN(got[2]) {
		t.Errorf("ratios %v", got)
	}
	if got := RatioOfMedians([]float64{2, 2, 2}, []float64{4, 4, 4}, 1); got.Estimate != 0.5 || got.Low != 0.5 || got.High != 0.5 {
		t.Errorf("ratio of medians %v", got)
	}
	defer func() {
		if recover() == nil {
			t.Error("arms of different lengths were paired")
		}
	}()
	Differences(a, b[:2])
}

func TestOrder(t *testing.T) {
	order := NewOrder(5, 11)
	firsts := map[int]int{}
	for range 500 {
		there, back := order.Next(), order.Next()
		firsts[there[0]]++
		reversed := slices.Clone(back)
		slices.Reverse(reversed)
		if !slices.Equal(there, reversed) {
			t.Fatalf("%v is followed by %v", there, back)
		}
		slices.Sort(back)
		if !slices.Equal(back, []int{0, 1, 2, 3, 4}) {
			t.Fatalf("%v are not all arms", back)
		}
	}
	for arm := range 5 {
		if firsts[arm] < 60 { // 100 expected, standard deviation 9
			t.Errorf("arm %d comes first in %d of 500", arm, firsts[arm])
		}
	}
	if a, b := NewOrder(9, 1).Next(), NewOrder(9, 1).Next(); !slices.Equal(a, b) {
		t.Errorf("the same seed gives %v and %v", a, b)
	}
}
