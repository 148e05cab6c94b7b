package load

import (
	"fmt"
	"time"
)

// Bounds of the units checks.
const (
	// Client loops spend little between a reply and the next message; the rest of a round is the sum of its round trips.
	// Half round trips would give 0.5, round trips of which only one in two is recorded as well.
	leastBusy = 0.70
	mostBusy  = 1.02
	// Two figures that a tool computes from the same messages agree but for rounding.
	sameWithin = 0.01
)

// checkSum compares the sum of all round-trip times with the time they took, one after the other.
func checkSum(sum, wall time.Duration, least float64) Check {
	busy := ratio(sum.Seconds(), wall.Seconds())
	return Check{
		Name: "units: sum of round-trip times against wall time", OK: busy >= least && busy <= mostBusy,
		Got: busy, Want: 1, Unit: "of wall time",
		Detail: fmt.Sprintf("%s of round trips in %s; %.2f to %.2f are right, half round trips would be below",
			sum.Round(time.Microsecond), wall.Round(time.Microsecond), least, mostBusy),
	}
}

// checkMost is checkSum for clients that wait between messages: only too much is wrong.
func checkMost(sum, wall time.Duration) Check {
	c := checkSum(sum, wall, 0)
	c.Name = "units: sum of round-trip times within wall time"
	c.Detail = fmt.Sprintf("%s of round trips in %s; the client waits between messages", sum.Round(time.Microsecond), wall.Round(time.Microsecond))
	return c
}

// checkSame compares two accounts of one quantity.
func checkSame(name, unit, detail string, got, want, within float64) Check {
	difference := got - want
	if difference < 0 {
		difference = -difference
	}
	return Check{Name: name, OK: difference <= within*want, Got: got, Want: want, Unit: unit, Detail: detail}
}

// checkSome fails a round without messages: an average of none is no result.
func checkSome(messages uint64) Check {
	return Check{Name: "messages answered", OK: messages > 0, Got: float64(messages), Want: 1, Unit: "messages", Detail: "at least 1"}
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
