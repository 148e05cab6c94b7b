package stats

import (
	"math"
	"slices"
)

// exactRounds is up to how many rounds the signed-rank distribution is counted out; beyond, its normal approximation is
// good to the last rank.
const exactRounds = 120

// SignedRank is the Hodges-Lehmann estimate over rounds (the median of the means of all pairs of rounds) with the interval
// that belongs to Wilcoxon's signed-rank test. It needs no normal distribution and no equal variances, only that a
// difference is as likely to fall to one side of the truth as to the other: which interleaving in shuffled order gives to
// paired rounds of equal arms. Thus its level is exact from six rounds on, where a bootstrap is too narrow.
//
// The interval's Level is the one that it really has: at least the level asked for, but less where the rounds are too few
// for that (five allow 0.9375; none allows any). Values that are no numbers do not count as rounds.
func SignedRank(rounds []float64, level float64) Interval {
	rounds = slices.DeleteFunc(slices.Clone(rounds), func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
	n := len(rounds)
	if n == 0 {
		return Interval{}
	}
	averages := walshAverages(rounds)
	rank, attained := signedRankBound(n, level)
	return Interval{
		Estimate: quantileSorted(averages, 0.5), Level: attained, Rounds: n,
		Low: averages[rank], High: averages[len(averages)-1-rank],
	}
}

// walshAverages are the means of all pairs, each value with itself too, in ascending order.
func walshAverages(values []float64) []float64 {
	averages := make([]float64, 0, len(values)*(len(values)+1)/2)
	for i, a := range values {
		for _, b := range values[i:] {
			averages = append(averages, a+(b-a)/2)
		}
	}
	slices.Sort(averages)
	return averages
}

// signedRankBound gives how many averages lie outside of the interval on each side, and the interval's level.
func signedRankBound(n int, level float64) (rank int, attained float64) {
	tail := (1 - level) / 2
	if n > exactRounds {
		mean := float64(n) * float64(n+1) / 4
		deviation := math.Sqrt(float64(n) * float64(n+1) * float64(2*n+1) / 24)
		return max(0, int(mean-normalQuantile(1-tail)*deviation-0.5)), level
	}
	below := 0.0 // the probability that the rank sum is less than rank+1
	for k, p := range signedRankProbabilities(n) {
		if below+p > tail && k > 0 {
			return k - 1, 1 - 2*below
		}
		below += p
		if k == 0 && below > tail {
			return 0, 1 - 2*below // too few rounds for this level: the widest interval there is
		}
	}
	return 0, 0
}

// signedRankProbabilities is the distribution of the sum of the ranks 1 to n, each counted with probability one half.
func signedRankProbabilities(n int) []float64 {
	probability := make([]float64, n*(n+1)/2+1)
	probability[0] = 1
	for rank, reached := 1, 0; rank <= n; rank++ {
		reached += rank
		for sum := reached; sum >= 0; sum-- {
			without := probability[sum] / 2
			if sum >= rank {
				without += probability[sum-rank] / 2
			}
			probability[sum] = without
		}
	}
	return probability
}

// normalQuantile is the value that a share p of the standard normal distribution lies below.
func normalQuantile(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }
