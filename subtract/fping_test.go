package subtract

import (
	"net/netip"
	"testing"

	"tare/mace"
)

// TestEchoSeriesNumber: fping numbers its requests in one row over all targets and shows an index per target.
func TestEchoSeriesNumber(t *testing.T) {
	alive, other := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	seen := func(g *generation, target netip.Addr, numbers ...uint16) {
		for _, seq := range numbers {
			g.echo(mace.Flow{Dst: target, SrcPort: 7}, seq)
		}
	}
	type lookup struct {
		index int
		want  int // -1: not known
	}
	for name, test := range map[string]struct {
		alive, other []uint16
		lookups      []lookup
	}{
		"one target":                   {alive: []uint16{0, 1, 2}, lookups: []lookup{{0, 0}, {1, 1}, {2, 2}}},
		"two targets":                  {alive: []uint16{0, 2}, other: []uint16{1, 3}, lookups: []lookup{{0, 0}, {1, 2}}},
		"seen in another order":        {alive: []uint16{2, 0}, other: []uint16{3, 1}, lookups: []lookup{{0, 0}, {1, 2}}},
		"the other's are never seen":   {alive: []uint16{0, 2, 4}, lookups: []lookup{{0, 0}, {1, 2}, {2, 4}}},
		"one reply is lost":            {alive: []uint16{0, 1, 2}, lookups: []lookup{{0, 0}, {2, 2}}},
		"lost, and one request unseen": {alive: []uint16{0, 2}, lookups: []lookup{{1, -1}}},
		"not sent yet":                 {alive: []uint16{0}, lookups: []lookup{{1, -1}}},
		"the last one":                 {alive: []uint16{0, 5}, lookups: []lookup{{-1, 5}}},
		"nothing":                      {lookups: []lookup{{0, -1}, {-1, -1}}},
	} {
		g := newGeneration()
		seen(&g, alive, test.alive...)
		seen(&g, other, test.other...)
		series := g.echoes[7]
		if series == nil {
			series = &echoSeries{}
		}
		for _, l := range test.lookups {
			got := -1
			if seq, ok := series.number(alive, l.index); ok {
				got = int(seq)
			}
			if got != l.want {
				t.Errorf("%s: index %d is number %d, want %d", name, l.index, got, l.want)
			}
		}
	}
}

// TestNamedLooksUpArgumentsOnly: what is looked up leaves this host, so the tool's output must not choose it.
func TestNamedLooksUpArgumentsOnly(t *testing.T) {
	trips := newRoundTrips(true, []string{"fping", "localhost"})
	trips.young.echo(mace.Flow{Dst: netip.MustParseAddr("127.0.0.1"), SrcPort: 7}, 0)
	if got := trips.named("localhost"); got != netip.MustParseAddr("127.0.0.1") {
		t.Errorf("localhost is %s, want 127.0.0.1", got)
	}
	if got := trips.named("secret.example.com"); got.IsValid() || len(trips.addresses) != 1 {
		t.Errorf("a name from the output was looked up: %s, %v", got, trips.addresses)
	}
}
