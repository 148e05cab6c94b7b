package stats

import (
	"math/rand/v2"
	"slices"
)

// Order gives the order of the arms in each round. Rounds come in twos: the arms shuffled, then the same backwards
// (A B B A), so that within two rounds a steady drift hits all arms alike, and over many no arm has a favourite
// predecessor.
type Order struct {
	random *rand.Rand
	order  []int
	back   bool
}

// NewOrder is for so many arms; the same seed gives the same orders.
func NewOrder(arms int, seed uint64) *Order {
	order := make([]int, arms)
	for i := range order {
		order[i] = i
	}
	return &Order{random: rand.New(rand.NewPCG(seed, 0)), order: order}
}

// Next is the next round's order, of the arms' numbers from 0. It belongs to the caller.
func (o *Order) Next() []int {
	if o.back {
		slices.Reverse(o.order)
	} else {
		o.random.Shuffle(len(o.order), func(i, k int) { o.order[i], o.order[k] = o.order[k], o.order[i] })
	}
	o.back = !o.back
	return slices.Clone(o.order)
}
