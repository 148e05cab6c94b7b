package subtract

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"time"

	"tare/mace"
)

// echoSeries is what fping has sent: it numbers all its requests in one row, and shows an index per target.
type echoSeries struct {
	seen   map[uint16]bool
	target map[netip.Addr][]uint16 // sequence numbers in ascending order
	shown  map[netip.Addr]int      // how many replies of it have been shown, from index 0 on without a gap
}

func (g *generation) echo(flow mace.Flow, seq uint16) {
	series := g.echoes[flow.SrcPort]
	if series == nil {
		series = &echoSeries{seen: map[uint16]bool{}, target: map[netip.Addr][]uint16{}, shown: map[netip.Addr]int{}}
		g.echoes[flow.SrcPort] = series
	}
	if series.seen[seq] {
		return
	}
	series.seen[seq] = true
	all := series.target[flow.Dst]
	at, _ := slices.BinarySearch(all, seq)
	series.target[flow.Dst] = slices.Insert(all, at, seq)
}

// number is the sequence number of a target's request of this index, from 0, that was answered; the last one's if
// index is -1.
func (s *echoSeries) number(target netip.Addr, index int) (uint16, bool) {
	all := s.target[target]
	if len(all) == 0 || index >= len(all) {
		return 0, false
	}
	if index < 0 {
		return all[len(all)-1], true
	}
	// A request that was answered has been seen. So if all before it were, the order tells, whatever is missing of
	// other targets: a dead one's requests may wait for its hardware address for ever, seen by nobody.
	if index == s.shown[target] {
		s.shown[target]++
		return all[index], true
	}
	// Else it is known only if no request before it has gone unseen, because that could have been this target's.
	for seq := range all[index] {
		if !s.seen[seq] {
			return 0, false
		}
	}
	return all[index], true
}

// lookupTimeout is what a name server may hold up the tool's output by, once for each name.
const lookupTimeout = time.Second

// resolve finds the addresses of those arguments of the tool that are names: fping does not tell what it has found.
// Names that only the tool's output has are not looked up, because the container chooses those, and a container
// without a way out must not get one through this host's name server.
func resolve(name string) []netip.Addr {
	ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
	defer cancel()
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", name)
	if err != nil {
		return nil
	}
	return addresses
}

// named is the address of a target that is known by name; none unless it is just one of those that were pinged.
func (t *roundTrips) named(name string) (found netip.Addr) {
	if !slices.Contains(t.argv, name) {
		return found
	}
	addresses, ok := t.addresses[name]
	if !ok {
		addresses = resolve(name)
		t.addresses[name] = addresses
	}
	for _, address := range addresses {
		address = address.Unmap()
		if !t.pinged(address) {
			continue
		}
		if found.IsValid() && found != address {
			return netip.Addr{}
		}
		found = address
	}
	return found
}

func (t *roundTrips) pinged(address netip.Addr) bool {
	for _, g := range []*generation{&t.old, &t.young} {
		for _, series := range g.echoes {
			if len(series.target[address]) > 0 {
				return true
			}
		}
	}
	return false
}
