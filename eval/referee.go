package eval

import (
	"fmt"
	"net/netip"
	"sync"

	"tare/mace"
)

// referee compares matched records with what the tap saw: is there such a packet, and at that time? Floods are long, so it
// keeps only what has not been compared yet.
type referee struct {
	container, remote netip.Addr

	mu      sync.Mutex
	matched int
	records []refereeRecord
	seen    map[direction]int64 // CLOCK_MONOTONIC, by the tap
}

// direction is an echo packet that goes one way.
type direction struct {
	echo
	egress bool
}

type refereeRecord struct {
	direction
	innerNS, outerNS int64
	src, dst         netip.Addr
	header           []byte // of what is no echo packet
}

func newReferee(container, remote netip.Addr) *referee {
	return &referee{container: container, remote: remote, seen: map[direction]int64{}}
}

// tapped takes a packet from the tap; ahead is realMinusMono.
func (r *referee) tapped(p tapped, ahead int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[direction{p.echo, p.Outgoing}] = p.RealNS - ahead
}

// record takes a matched record of the measured container.
func (r *referee) record(record *mace.Record) {
	if record.Kind != mace.Egress && record.Kind != mace.Ingress {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.matched++
	entry := refereeRecord{innerNS: record.InnerNS, outerNS: record.OuterNS}
	entry.egress = record.Kind == mace.Egress
	// A record's header has the container's view of the addresses and ends where the linear part of the packet did.
	if p, ok := parseTapped(record.Header); ok {
		entry.echo, entry.src, entry.dst = p.echo, p.Src, p.Dst
	} else {
		entry.header = append(entry.header, record.Header...)
	}
	r.records = append(r.records, entry)
}

// count is how many records were matched by now.
func (r *referee) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.matched
}

// judge compares all, when both sides have seen all.
func (r *referee) judge() *FalseMatches {
	r.mu.Lock()
	defer r.mu.Unlock()
	result := &FalseMatches{}
	found := map[direction]bool{}
	var egressUs, ingressUs []float64
	for _, record := range r.records {
		src, dst := r.remote, r.container
		if record.egress {
			src, dst = dst, src
		}
		result.Packets++
		tapNS, known := r.seen[record.direction]
		after := record.outerNS - tapNS
		wrong := ""
		switch {
		case record.src != src || record.dst != dst:
			result.WrongDestination++
			wrong = "another destination"
		case !known:
			result.WrongIdentity++
			wrong = "no such packet at the NIC"
		case found[record.direction]:
			result.Repeated++
			wrong = "matched twice"
		case after > int64(timeAgreement) || after < -int64(timeAgreement):
			result.WrongTime++
			wrong = fmt.Sprintf("%d ns from the tap's time", after)
		case record.egress:
			egressUs = append(egressUs, float64(after)/1e3)
		default:
			ingressUs = append(ingressUs, float64(after)/1e3)
		}
		found[record.direction] = true
		if wrong != "" && len(result.Examples) < maxExamples {
			result.Examples = append(result.Examples, wrong+": "+record.String())
		}
	}
	result.EgressAfterTapUs, result.IngressAfterTapUs = sampleOf(egressUs, 0), sampleOf(ingressUs, 0)
	return result
}

const maxExamples = 10

func (r refereeRecord) String() string {
	if r.header != nil {
		return fmt.Sprintf("egress %t, inner %d ns, outer %d ns, header %x", r.egress, r.innerNS, r.outerNS, r.header)
	}
	return fmt.Sprintf("egress %t, inner %d ns, outer %d ns, %s to %s, ICMP type %d, sequence number %d, payload %x",
		r.egress, r.innerNS, r.outerNS, r.src, r.dst, r.Type, r.Seq, r.Payload)
}
