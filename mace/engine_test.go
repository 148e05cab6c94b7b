package mace

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
)

var nowhere = Device{NetNSCookie: 1 << 62, Index: 1 << 30, Name: "none"}

// openPath opens an engine whose NIC does not exist, for tests that need no packets.
func openPath(t *testing.T, text string) *Engine {
	t.Helper()
	path, err := ParsePath(text)
	if err != nil {
		t.Fatal(err)
	}
	engine, err := Open(Options{Path: path, NICs: []Device{nowhere}, RingBytes: 4096})
	var verifier *ebpf.VerifierError
	if errors.As(err, &verifier) {
		t.Fatal(strings.Join(verifier.Log[max(0, len(verifier.Log)-60):], "\n"))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { engine.Close() })
	return engine
}

// Each path is other programs to the verifier, as their constants differ.
func TestOpenEveryPath(t *testing.T) {
	texts := PathNames()
	for _, egress := range []string{"container:net_dev_queue", "container:net_dev_start_xmit", "sys_enter"} {
		for _, outer := range []string{"net_dev_queue", "net_dev_start_xmit", "net_dev_xmit"} {
			texts = append(texts, "egress="+egress+",nic:"+outer+" ingress=nic:netif_receive_skb,container:netif_receive_skb")
		}
	}
	for _, outer := range []string{"netif_receive_skb", "napi_gro_receive_entry|napi_gro_frags_entry|netif_rx|stamp"} {
		for _, inner := range []string{"container:netif_rx", "container:netif_receive_skb", "container:stamp", "skb_copy_datagram_iovec", "sys_exit"} {
			texts = append(texts, "egress=container:net_dev_queue,nic:net_dev_queue ingress=nic:"+outer+","+inner)
		}
	}
	for _, text := range texts {
		t.Run(text, func(t *testing.T) {
			engine := openPath(t, text)
			if got := engine.Path().Name; got != text {
				t.Errorf("the engine's path is named %q", got)
			}
			if _, err := engine.ProgramCosts(); err != nil {
				t.Error(err)
			}
			for range 2 {
				if err := engine.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestOpenErrors(t *testing.T) {
	path, err := ParsePath("inner-dev")
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := Device{NetNSCookie: 1 << 61, Index: 1, Name: "elsewhere"}
	for _, tt := range []struct {
		name string
		nics []Device
		want string
	}{
		{"no NIC", nil, "0 NICs given, want 1 to 4"},
		{"too many", []Device{nowhere, nowhere, nowhere, nowhere, nowhere}, "5 NICs given, want 1 to 4"},
		{"two namespaces", []Device{nowhere, elsewhere}, "NICs none and elsewhere are in different network namespaces"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			engine, err := Open(Options{Path: path, NICs: tt.nics})
			if err == nil {
				engine.Close()
				t.Fatal("no error")
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %q, want %q in it", err, tt.want)
			}
		})
	}
}

// A ring's size must be a power of two and whole pages. That shows when it is made, and must leave nothing behind.
func TestActivateWithBadRing(t *testing.T) {
	path, err := ParsePath("inner-dev")
	if err != nil {
		t.Fatal(err)
	}
	engine, err := Open(Options{Path: path, NICs: []Device{nowhere}, RingBytes: 5000})
	if err != nil {
		return // it may as well be refused at once
	}
	defer engine.Close()
	if _, err := engine.Activate(7); err == nil {
		t.Fatal("a ring of 5000 bytes was made")
	}
	if slot, err := engine.freeSlot(7); err != nil || slot != 7 {
		t.Errorf("its place in the table is taken: %d, %v", slot, err)
	}
}

// The clock that stamps packets may be set at any time; programs and reader must learn of it.
func TestClock(t *testing.T) {
	engine := openPath(t, "wire")
	var inPrograms int64
	if err := engine.clock.shared.Get(&inPrograms); err != nil {
		t.Fatal(err)
	}
	if ahead := engine.clock.ahead.Load(); ahead != inPrograms {
		t.Errorf("programs know a difference of %d ns, the reader %d", inPrograms, ahead)
	}
	// Both directions of the conversion, to the accuracy of reading two clocks one after the other.
	now := time.Now()
	monotonic := engine.clock.monotonic(uint64(now.UnixNano()))
	if back := engine.clock.wall(uint64(monotonic)); !back.Equal(now) {
		t.Errorf("%v became %v", now, back)
	}
	engine.clock.ahead.Add(-1e9) // as if it had been set by a second meanwhile
	if err := engine.clock.update(); err != nil {
		t.Fatal(err)
	}
	if off := engine.clock.ahead.Load() - inPrograms; off < -1e6 || off > 1e6 {
		t.Errorf("after an update it is off by %d ns", off)
	}
}
