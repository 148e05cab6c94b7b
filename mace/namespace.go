package mace

import (
	"errors"
	"fmt"
	"os"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"
)

const (
	maxNamespaces = 64  // TARE_NAMESPACES
	cookieSlots   = 256 // TARE_COOKIE_SLOTS
	cookieProbes  = 8   // PROBES
)

// ErrActive says that the namespace is being watched by this engine already.
var ErrActive = errors.New("network namespace is active already")

// Namespace is a network namespace under watch. Its methods are for one goroutine at a time.
type Namespace struct {
	engine     *Engine
	cookie     uint64
	index      uint32
	slot       uint32
	ring       *ebpf.Map
	aggregates *ebpf.Map
	reader     *ringbuf.Reader
	raw        ringbuf.Record
	record     Record   // what raw says
	base       Counters // what the index's counters held before: an earlier namespace's
	closed     bool
}

// Activate begins to watch the network namespace of this cookie (SO_NETNS_COOKIE).
func (e *Engine) Activate(cookie uint64) (_ *Namespace, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	ns := &Namespace{engine: e, cookie: cookie, index: maxNamespaces}
	for i, other := range e.namespaces {
		if other == nil && (ns.index == maxNamespaces || e.released[i].Before(e.released[ns.index])) {
			ns.index = uint32(i)
		}
		if other != nil && other.cookie == cookie {
			return nil, fmt.Errorf("activating network namespace %d: %w", cookie, ErrActive)
		}
	}
	if ns.index == maxNamespaces {
		return nil, fmt.Errorf("activating network namespace %d: %d are active already", cookie, maxNamespaces)
	}
	// Packets that were under way when the index was released must not be told to its next holder. The one that was
	// released longest ago is taken, so it takes 64 activations within seconds to have to wait.
	time.Sleep(time.Until(e.released[ns.index].Add(2 * time.Duration(maxAgeNS))))
	if ns.slot, err = e.freeSlot(cookie); err != nil {
		return nil, err
	}
	if ns.base, err = e.readCounters(ns.index); err != nil {
		return nil, err
	}
	if err := ns.open(); err != nil {
		ns.release()
		return nil, fmt.Errorf("activating network namespace %d: %w", cookie, err)
	}
	e.namespaces[ns.index] = ns
	return ns, nil
}

// freeSlot finds where the programs will look for this cookie (roles.h).
func (e *Engine) freeSlot(cookie uint64) (uint32, error) {
	for probe := range uint64(cookieProbes) {
		slot := uint32((cookie + probe) % cookieSlots)
		var held bpfActiveNamespace
		if err := e.objects.Maps["namespaces"].Lookup(slot, &held); err != nil {
			return 0, fmt.Errorf("reading the table of active namespaces: %w", err)
		}
		if held.Cookie == 0 {
			return slot, nil
		}
	}
	return 0, fmt.Errorf("activating network namespace %d: its places in the table of active ones are taken", cookie)
}

func (ns *Namespace) open() (err error) {
	objects := ns.engine.objects
	spec, err := objectSpec()
	if err != nil {
		return err
	}
	ring := spec.Maps["rings"].InnerMap.Copy()
	ring.MaxEntries = uint32(ns.engine.options.RingBytes)
	if ns.ring, err = ebpf.NewMap(ring); err != nil {
		return explain("making its ring", err)
	}
	if ns.aggregates, err = ebpf.NewMap(spec.Maps["aggregates"].InnerMap); err != nil {
		return explain("making its aggregates", err)
	}
	if ns.reader, err = ringbuf.NewReader(ns.ring); err != nil {
		return fmt.Errorf("reading its ring: %w", err)
	}
	if err := objects.Maps["rings"].Put(ns.index, ns.ring); err != nil {
		return fmt.Errorf("handing its ring to the programs: %w", err)
	}
	if err := objects.Maps["aggregates"].Put(ns.index, ns.aggregates); err != nil {
		return fmt.Errorf("handing its aggregates to the programs: %w", err)
	}
	// Last: from here on its packets are seen.
	entry := bpfActiveNamespace{Cookie: ns.cookie, Index: ns.index}
	if err := objects.Maps["namespaces"].Put(ns.slot, entry); err != nil {
		return fmt.Errorf("entering it into the table: %w", err)
	}
	return nil
}

func (ns *Namespace) release() {
	objects := ns.engine.objects
	var held bpfActiveNamespace
	if objects.Maps["namespaces"].Lookup(ns.slot, &held) == nil && held.Cookie == ns.cookie {
		// A later one that probed past this slot would not be found over a hole: those move up.
		objects.Maps["namespaces"].Put(ns.slot, bpfActiveNamespace{})
		ns.engine.closeHole(ns.slot)
	}
	objects.Maps["rings"].Delete(ns.index)
	objects.Maps["aggregates"].Delete(ns.index)
	if ns.reader != nil {
		ns.reader.Close()
	}
	for _, m := range []*ebpf.Map{ns.ring, ns.aggregates} {
		if m != nil {
			m.Close()
		}
	}
}

// closeHole moves a namespace that was entered behind its own place, past this slot, into it.
func (e *Engine) closeHole(hole uint32) {
	table := e.objects.Maps["namespaces"]
	for _, ns := range e.namespaces {
		if ns == nil {
			continue
		}
		first := uint32(ns.cookie % cookieSlots)
		toHole, toSlot := (hole-first)%cookieSlots, (ns.slot-first)%cookieSlots
		if toHole < toSlot {
			left := ns.slot
			table.Put(hole, bpfActiveNamespace{Cookie: ns.cookie, Index: ns.index})
			ns.slot = hole
			table.Put(left, bpfActiveNamespace{})
			e.closeHole(left)
			return
		}
	}
}

// Close stops watching. What the ring still holds is lost.
func (ns *Namespace) Close() error {
	ns.engine.mu.Lock()
	defer ns.engine.mu.Unlock()
	if ns.closed {
		return nil
	}
	ns.closed = true
	ns.engine.namespaces[ns.index] = nil
	ns.engine.released[ns.index] = time.Now()
	ns.release()
	return nil
}

// Drain hands over the records that have come since the last call, oldest first, without waiting for more. The
// record is valid only during the call of f.
//
// Programs do not wake the reader: that would cost a packet more than all else they do. So the caller asks, every
// few milliseconds or when it needs to know.
func (ns *Namespace) Drain(f func(*Record)) error {
	if err := ns.engine.clock.update(); err != nil {
		return err
	}
	ns.reader.SetDeadline(time.Unix(1, 0))
	// What comes meanwhile is for the next call: beside a flood that is faster than f, there would be no end.
	for left := ns.reader.AvailableBytes(); left > 0; {
		err := ns.reader.ReadInto(&ns.raw)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading records: %w", err)
		}
		left -= len(ns.raw.RawSample) + ringHeaderBytes
		// The programs reserve either of two sizes; what the ring returns is rounded up to 8 bytes.
		switch size := uintptr(len(ns.raw.RawSample)); {
		case size >= unsafe.Sizeof(bpfTareRecord{}):
			ns.record.read((*bpfTareRecord)(unsafe.Pointer(&ns.raw.RawSample[0])), ns.engine.clock)
		case size >= unsafe.Sizeof(bpfTareDelivery{}):
			ns.record.readDelivery((*bpfTareDelivery)(unsafe.Pointer(&ns.raw.RawSample[0])), ns.engine.clock)
		default:
			return fmt.Errorf("reading records: one of %d bytes", size)
		}
		f(&ns.record)
	}
	return nil
}

// ringHeaderBytes is what the kernel puts before each record of a ring (BPF_RINGBUF_HDR_SZ).
const ringHeaderBytes = 8
