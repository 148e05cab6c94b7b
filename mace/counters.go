package mace

import (
	"fmt"
	"reflect"
)

// Counters say where every packet of a namespace went.
type Counters struct {
	DeviceTx, DeviceRx uint64 // packets that the programs saw at the container's devices

	EgressStarted, EgressStartedGSO  uint64
	EgressMatched, EgressMatchedGSO  uint64
	EgressAmbiguous                  uint64
	EgressOverwritten                uint64
	IngressMatched, IngressAmbiguous uint64
	IngressMerged, IngressUnstarted  uint64
	Delivered, DeliveredUnmatched    uint64
	PendingOverflow                  uint64
	RingDropped                      uint64
	Malformed                        uint64

	// What is to be added to DeviceTx and DeviceRx if each segment of a GSO packet counts.
	DeviceTxExtra, DeviceRxExtra uint64
}

// Counters reads the counts since the namespace was activated.
func (ns *Namespace) Counters() (Counters, error) {
	now, err := ns.engine.readCounters(ns.index)
	if err != nil {
		return Counters{}, err
	}
	return now.Sub(ns.base), nil
}

// Sub is what happened between an earlier reading and this one.
func (c Counters) Sub(earlier Counters) Counters {
	return c.combine(earlier, func(a, b uint64) uint64 { return a - b })
}

func (c Counters) combine(other Counters, f func(a, b uint64) uint64) Counters {
	a, b := reflect.ValueOf(&c).Elem(), reflect.ValueOf(other)
	for i := range a.NumField() {
		a.Field(i).SetUint(f(a.Field(i).Uint(), b.Field(i).Uint()))
	}
	return c
}

func (e *Engine) readCounters(index uint32) (Counters, error) {
	var perCPU []bpfTareCounters
	if err := e.objects.Maps["counters"].Lookup(index, &perCPU); err != nil {
		return Counters{}, fmt.Errorf("reading counters of a namespace: %w", err)
	}
	var sum Counters
	for _, c := range perCPU {
		sum = sum.combine(Counters{
			c.DeviceTx, c.DeviceRx,
			c.EgressStarted, c.EgressStartedGso, c.EgressMatched, c.EgressMatchedGso,
			c.EgressAmbiguous, c.EgressOverwritten,
			c.IngressMatched, c.IngressAmbiguous, c.IngressMerged, c.IngressUnstarted,
			c.Delivered, c.DeliveredUnmatched, c.PendingOverflow, c.RingDropped, c.Malformed,
			c.DeviceTxExtra, c.DeviceRxExtra,
		}, func(a, b uint64) uint64 { return a + b })
	}
	return sum, nil
}

// NICCounters say how many packets the programs saw at one NIC since the engine was opened: everybody's, at the path's
// outer ends.
type NICCounters struct {
	Tx, Rx uint64
	// What is to be added if each segment of a GSO packet counts.
	TxExtra, RxExtra uint64
}

// Sub is what happened between an earlier reading and this one.
func (c NICCounters) Sub(earlier NICCounters) NICCounters {
	return NICCounters{c.Tx - earlier.Tx, c.Rx - earlier.Rx, c.TxExtra - earlier.TxExtra, c.RxExtra - earlier.RxExtra}
}

// NICCounters reads the counts of the NIC that is the i-th of the engine's options.
func (e *Engine) NICCounters(i int) (NICCounters, error) {
	var perCPU []bpfTareNicCounters
	if err := e.objects.Maps["nic_counters"].Lookup(uint32(i), &perCPU); err != nil {
		return NICCounters{}, fmt.Errorf("reading counters of NIC %s: %w", e.options.NICs[i].Name, err)
	}
	var sum NICCounters
	for _, c := range perCPU {
		sum.Tx += c.Tx
		sum.Rx += c.Rx
		sum.TxExtra += c.TxExtra
		sum.RxExtra += c.RxExtra
	}
	return sum, nil
}
