package mace

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

// lookup is namespace_index of bpf/roles.h: what the programs find.
func lookup(t *testing.T, e *Engine, cookie uint64) (index uint32, ok bool) {
	t.Helper()
	for probe := range uint64(cookieProbes) {
		var held bpfActiveNamespace
		if err := e.objects.Maps["namespaces"].Lookup(uint32((cookie+probe)%cookieSlots), &held); err != nil {
			t.Fatal(err)
		}
		if held.Cookie == 0 {
			return 0, false
		}
		if held.Cookie == cookie {
			return held.Index, true
		}
	}
	return 0, false
}

func mustActivate(t *testing.T, e *Engine, cookie uint64) *Namespace {
	t.Helper()
	ns, err := e.Activate(cookie)
	if err != nil {
		t.Fatal(err)
	}
	return ns
}

func TestActivateTwice(t *testing.T) {
	engine := openPath(t, "inner-dev")
	ns := mustActivate(t, engine, 1000)
	if _, err := engine.Activate(1000); !errors.Is(err, ErrActive) {
		t.Errorf("error %v, want ErrActive", err)
	}
	for range 2 {
		if err := ns.Close(); err != nil {
			t.Error(err)
		}
	}
	mustActivate(t, engine, 1000)
}

func TestNamespaceLimit(t *testing.T) {
	engine := openPath(t, "inner-dev")
	var all []*Namespace
	for i := range uint64(maxNamespaces) {
		all = append(all, mustActivate(t, engine, 1000+i))
	}
	_, err := engine.Activate(5000)
	if want := "activating network namespace 5000: 64 are active already"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %q", err, want)
	}
	all[17].Close()
	if ns := mustActivate(t, engine, 5000); ns.index != all[17].index {
		t.Errorf("it got place %d, and free was %d", ns.index, all[17].index)
	}
}

// Cookies with the same remainder want the same place in the table.
func TestCookieCollisions(t *testing.T) {
	engine := openPath(t, "inner-dev")
	var all []*Namespace
	for i := range uint64(cookieProbes) {
		all = append(all, mustActivate(t, engine, 254+i*cookieSlots)) // they go round the table's end
	}
	_, err := engine.Activate(254 + 100*cookieSlots)
	if want := "activating network namespace 25854: its places in the table of active ones are taken"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %q", err, want)
	}
	if _, ok := lookup(t, engine, 254+100*cookieSlots); ok {
		t.Error("the one that was refused is found")
	}
	// Whichever goes, the others must still be found.
	for _, gone := range []int{3, 0, 7, 1} {
		all[gone].Close()
		for i, ns := range all {
			index, ok := lookup(t, engine, ns.cookie)
			if ok == ns.closed || ok && index != ns.index {
				t.Errorf("after the end of %d, %d is found %t at %d", gone, i, ok, index)
			}
		}
	}
	mustActivate(t, engine, 254+100*cookieSlots)
}

// Any order of activations and ends leaves a table in which each active namespace is found and no other.
func TestCookieTableLikeAMap(t *testing.T) {
	engine := openPath(t, "inner-dev")
	random := rand.New(rand.NewPCG(1, 2))
	active := map[uint64]*Namespace{}
	// 24 cookies on 6 places: chains that run into each other.
	var cookies []uint64
	for i := range uint64(24) {
		cookies = append(cookies, 250+i%6*2+i/6*cookieSlots)
	}
	for range 120 {
		cookie := cookies[random.IntN(len(cookies))]
		if ns := active[cookie]; ns != nil {
			ns.Close()
			delete(active, cookie)
		} else if ns, err := engine.Activate(cookie); err == nil {
			active[cookie] = ns
		}
		for _, cookie := range cookies {
			index, ok := lookup(t, engine, cookie)
			ns := active[cookie]
			if ok != (ns != nil) || ok && index != ns.index {
				t.Fatalf("%d is found %t; it is active: %t", cookie, ok, ns != nil)
			}
		}
	}
	var left []uint64
	for cookie, ns := range active {
		left = append(left, cookie)
		ns.Close()
	}
	slices.Sort(left)
	for slot := range uint32(cookieSlots) {
		var held bpfActiveNamespace
		if err := engine.objects.Maps["namespaces"].Lookup(slot, &held); err != nil || held.Cookie != 0 {
			t.Errorf("place %d still holds %d after the end of %v: %v", slot, held.Cookie, left, err)
		}
	}
}
