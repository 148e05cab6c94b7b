package main

import (
	"encoding/json"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"tare/container/containertest"
	"tare/hops"
	"tare/lab"
)

func TestHopsScripts(t *testing.T) { runScripts(t, "hops", nil) }

// TestHopsInterrupt: ^C shows what there is, and leaves nothing.
func TestHopsInterrupt(t *testing.T) {
	const pings = 100
	l := newLab(t, lab.Options{})
	p := newProcess("hops", "--netns", c1(l), "-o", "json")
	p.start(t)
	waitUntil(t, "it follows", func() bool { return strings.HasPrefix(p.stderr.String(), "following netns:") })
	left := observe(t, p)
	ping := exec.Command("ping", "-q", "-i", "0.002", "-c", "100", l.RemoteAddr4().String())
	if err := l.Start(lab.Container(1), ping); err != nil {
		t.Fatal(err)
	}
	if err := ping.Wait(); err != nil {
		t.Fatalf("ping: %s", err)
	}
	p.signal(t, syscall.SIGINT, 0)
	var r hops.Report
	if err := json.Unmarshal([]byte(p.stdout.String()), &r); err != nil {
		t.Fatalf("%s\n%s", err, &p.stdout)
	}
	// What the kernel has kept from the programs is known by the devices' counts.
	missing := int(r.Account.CountedTx+r.Account.CountedRx) - int(r.Account.DeviceTx+r.Account.DeviceRx)
	if r.Egress.Packets+r.Ingress.Packets+max(0, missing) < 2*pings {
		t.Errorf("of %d pings %d went out and %d came back; %d packets are missing", pings, r.Egress.Packets, r.Ingress.Packets, missing)
	}
	if text := p.stderr.String(); strings.Contains(text, "tare:") {
		t.Errorf("it says\n%s", text)
	}
	left.nothing()
}

// TestHopsOnTerminal: the bars take the width that there is.
func TestHopsOnTerminal(t *testing.T) {
	l := newLab(t, lab.Options{})
	p, terminal := onTerminal(t, "hops", "--netns", c1(l), "--for", "50ms")
	var text strings.Builder
	buffer := make([]byte, 4096)
	for {
		n, err := terminal.Read(buffer)
		text.Write(buffer[:n])
		if err != nil { // the other end is closed
			break
		}
	}
	if code := p.wait(t); code != 0 {
		t.Fatalf("exit code %d\n%s", code, &text)
	}
	widest := 0
	for line := range strings.Lines(text.String()) {
		if strings.HasPrefix(line, "out: ") {
			widest = len([]rune(strings.TrimRight(line, "\r\n")))
		}
	}
	if widest != 120 { // of 200: more does not read well
		t.Errorf("a line of %d columns, want 120\n%s", widest, &text)
	}
}

// TestHopsContainer: a real container's devices have other names and go the same way.
func TestHopsContainer(t *testing.T) {
	eachRuntime(t, func(t *testing.T, runtime *containertest.Runtime, id, remote string) {
		p := newProcess("hops", "--container", "web", "--count", "20", "--for", "20s", "-o", "json")
		p.start(t)
		waitUntil(t, "it follows", func() bool { return strings.HasPrefix(p.stderr.String(), "following "+runtime.Name+":web, ") })
		in(t, "web", "ping", "-c", "20", "-i", "0.02", remote)
		if code := p.wait(t); code != 0 {
			t.Fatalf("exit code %d\n%s", code, &p.stderr)
		}
		var r hops.Report
		if err := json.Unmarshal([]byte(p.stdout.String()), &r); err != nil {
			t.Fatal(err)
		}
		for _, s := range []hops.Summary{r.Egress, r.Ingress} {
			names := map[string]bool{}
			for _, h := range s.Hops {
				names[h.Name] = true
			}
			if s.Packets == 0 || !names["veth"] || !names["bridge"] || !names["netfilter, routing"] {
				t.Errorf("%d packets: %+v", s.Packets, s.Hops)
			}
		}
	})
}
