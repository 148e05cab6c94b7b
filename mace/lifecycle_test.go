package mace_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/vishvananda/netlink"

	"tare/lab"
	"tare/mace"
	"tare/mace/macetest"
)

// Each namespace gets its own packets and nobody else's.
func TestTwoNamespacesOfOneEngine(t *testing.T) {
	l := up(t, lab.Options{Containers: 3})
	run(t, "three hosts", func(t *testing.T) { oneOfThree(t, l) })
}

func oneOfThree(t *testing.T, l *lab.Lab) {
	server := echo(t, l, lab.Remote)
	engine := open(t, l, "syscalls")
	one, two := activate(t, engine, l, "c1"), activate(t, engine, l, "c2")
	requests := map[string]int{"c1": 30, "c2": 50, "c3": 70} // nobody watches c3
	var running []*macetest.Process
	clients := map[string]macetest.Client{}
	for host, n := range requests {
		clients[host] = macetest.Client{Protocol: "raw", Remote: remote(l, false, server.Port), Requests: n}
		running = append(running, client(t, l, host, clients[host]))
	}
	for _, p := range running {
		if _, err := p.Finish(); err != nil {
			t.Fatal(err)
		}
	}
	for _, w := range []*watch{one, two} {
		w.finish()
		c := clients[w.host]
		for _, direction := range []mace.Kind{mace.Egress, mace.Ingress} {
			tally := w.tally(direction, func(p *mace.Passage) bool { return question(c, p) || answer(c, p) })
			if !w.expected(direction, tally, c.Requests) {
				t.Errorf("%s: %d requests, %+v unseen, and by status these %s packets: %v", w.host, c.Requests, w.missing, direction, tally)
			}
		}
		own := l.ContainerAddr4(map[string]int{"c1": 1, "c2": 2}[w.host])
		for i := range w.passages {
			// What the bridge sends to all on its link is everybody's.
			if p := &w.passages[i]; p.Src.Is4() && p.Src != own && p.Dst != own && !p.Dst.IsMulticast() {
				t.Fatalf("%s is told of somebody else's packet: %+v", w.host, *p)
			}
		}
	}
}

func TestTwoEnginesOnOneNamespace(t *testing.T) {
	l := up(t, lab.Options{})
	server := echo(t, l, lab.Remote)
	run(t, "ping", func(t *testing.T) {
		var watches []*watch
		for _, path := range []string{"inner-dev", "wire"} {
			watches = append(watches, activate(t, open(t, l, path), l, "c1"))
		}
		c := macetest.Client{Protocol: "raw", Remote: remote(l, false, server.Port), Requests: 50}
		result := exchange(t, l, "c1", c)
		for _, w := range watches {
			w.finish()
			w.answered(c, result)
		}
	})
}

// Whatever comes and goes, a namespace's numbers begin at zero, and what is under way for one never reaches the next.
func TestActivationAgainAndAgain(t *testing.T) {
	l := up(t, lab.Options{Containers: 2})
	engine := open(t, l, "inner-dev")
	load, err := l.StartBackground(t.Context(), lab.Background{Floods: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer load.Stop()
	cookies := map[int]uint64{}
	for i := range 2 {
		if cookies[i], err = l.NetNSCookie(lab.Container(i + 1)); err != nil {
			t.Fatal(err)
		}
	}
	before := openFiles(t)
	for i := range 100 {
		own := l.ContainerAddr4(i%2 + 1)
		ns, err := engine.Activate(cookies[i%2])
		if err != nil {
			t.Fatal(err)
		}
		records := uint64(0)
		err = ns.Drain(func(r *mace.Record) {
			records++
			if p, ok := mace.ParsePacket(r.Header, int(r.Len)); ok && p.Src.Is4() && p.Src != own && p.Dst != own {
				t.Errorf("%s is told of somebody else's packet: %+v", own, p)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if c, err := ns.Counters(); err != nil || c.DeviceTx+c.DeviceRx > 100000 {
			t.Fatalf("counts of a new namespace: %+v, %v", c, err)
		}
		if err := ns.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if after := openFiles(t); after > before {
		t.Errorf("%d files are open, and before there were %d", after, before)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, entry := range entries {
		// Of eBPF: the runtime opens others as it likes.
		if target, _ := os.Readlink(filepath.Join("/proc/self/fd", entry.Name())); target == "anon_inode:bpf-map" || target == "anon_inode:[eventpoll]" {
			n++
		}
	}
	return n
}

func TestNamespaceThatDisappears(t *testing.T) { run(t, "c1", namespaceDisappears) }

func namespaceDisappears(t *testing.T) {
	l := up(t, lab.Options{Containers: 2})
	server := echo(t, l, lab.Remote)
	engine := open(t, l, "syscalls")
	gone, stays := activate(t, engine, l, "c1"), activate(t, engine, l, "c2")
	c := macetest.Client{Protocol: "raw", Remote: remote(l, false, server.Port), Requests: 10}
	exchange(t, l, "c1", c)
	gone.settle()
	deleteLink(t, l, "c1", lab.ContainerDevice)
	command(t, l, lab.Host, "ip", "netns", "del", l.NetNSName("c1"))

	gone.drain() // what was seen before is not lost
	gone.joiner.Flush()
	if tally := gone.tally(mace.Ingress, func(p *mace.Passage) bool { return answer(c, p) }); !gone.expected(mace.Ingress, tally, c.Requests) {
		t.Errorf("%d requests, %+v unseen, and by status these answers: %v", c.Requests, gone.missing, tally)
	}
	if err := gone.ns.Close(); err != nil {
		t.Error(err)
	}
	result := exchange(t, l, "c2", c)
	stays.finish()
	stays.answered(c, result)
}

func TestNICThatDisappears(t *testing.T) { run(t, lab.NIC, nicDisappears) }

func nicDisappears(t *testing.T) {
	l := up(t, lab.Options{})
	server := echo(t, l, lab.Remote)
	engine := open(t, l, "max-dev")
	w := activate(t, engine, l, "c1")
	c := macetest.Client{Protocol: "raw", Remote: remote(l, false, server.Port), Requests: 10}
	result := exchange(t, l, "c1", c)
	w.finish()
	w.answered(c, result)
	deleteLink(t, l, lab.Host, lab.NIC)
	// Unanswered, and accounted for.
	if err := l.Command(t.Context(), "c1", "ping", "-c", "3", "-i", "0.01", "-W", "0.1", "-q", l.RemoteAddr4().String()).Run(); err == nil {
		t.Error("ping is answered without a NIC")
	}
	w.finish()
	if !near(int(w.counts.EgressMatched), 10, w.missing.out()) || w.unfinished()+w.missing.containerTx < 3 {
		t.Errorf("10 pings left before and 3 did not: %+v, unseen %+v", w.counts, w.missing)
	}
	if err := engine.Close(); err != nil {
		t.Error(err)
	}
}

func deleteLink(t *testing.T, l *lab.Lab, host, name string) {
	t.Helper()
	err := l.Do(host, func() error {
		link, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		return netlink.LinkDel(link)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A reader that is too slow loses records, knows how many, and loses nothing of the aggregates.
func TestRingOverflow(t *testing.T) {
	l := up(t, lab.Options{})
	server := echo(t, l, lab.Remote)
	for _, path := range mace.PathNames() {
		run(t, path, func(t *testing.T) {
			engine := open(t, l, path, func(o *mace.Options) { o.RingBytes = 4096 })
			w := activate(t, engine, l, "c1")
			c := macetest.Client{Protocol: "raw", Remote: remote(l, false, server.Port), Requests: 500}
			exchange(t, l, "c1", c)
			w.drain()
			w.read()
			w.compare()
			told := uint64(0)
			for kind := range w.records {
				for _, n := range w.records[kind] {
					told += n
				}
			}
			n := w.counts
			records := n.EgressMatched + n.IngressMatched + n.IngressUnstarted + n.Delivered
			if n.RingDropped == 0 || told+n.RingDropped != records {
				t.Errorf("%d records were told and %d dropped, of %d: %+v", told, n.RingDropped, records, n)
			}
			egress, ingress, err := w.ns.Aggregates()
			if err != nil {
				t.Fatal(err)
			}
			if !near(int(egress.Count), 500, w.missing.out()) || !near(int(ingress.Count), 500, w.missing.in()) {
				t.Errorf("of 500 requests the aggregates have %d out and %d in; unseen: %+v", egress.Count, ingress.Count, w.missing)
			}
			// When there is room again, records come again.
			w.drain()
			before := fmt.Sprint(w.records)
			exchange(t, l, "c1", macetest.Client{Protocol: "raw", Remote: c.Remote, Requests: 10})
			if w.drain(); fmt.Sprint(w.records) == before {
				t.Error("after an overflow nothing is told any more")
			}
		})
	}
}
