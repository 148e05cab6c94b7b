package mace_test

import (
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"tare/lab"
	"tare/mace"
	"tare/mace/macetest"
)

// A device with an XDP program rebuilds the skbs that it gets.
func TestXDP(t *testing.T) {
	l := up(t, lab.Options{})
	server := echo(t, l, lab.Remote)
	passAll(t, l, "c1", lab.ContainerDevice)
	for _, identityKeys := range []bool{false, true} {
		for _, p := range protocols {
			name := map[bool]string{false: "by skb/", true: "by identity/"}[identityKeys] + p.name
			run(t, name, func(t *testing.T) {
				w := activate(t, open(t, l, "inner-dev", func(o *mace.Options) { o.IdentityKeys = identityKeys }), l, "c1")
				w.arrivals = byProtocol
				c := macetest.Client{Protocol: p.protocol, Remote: remote(l, p.v6, server.Port), Requests: 100}
				result := exchange(t, l, "c1", c)
				w.finish()
				if identityKeys {
					w.answered(c, result)
					return
				}
				// Not known rather than guessed.
				tally := w.tally(mace.Ingress, func(p *mace.Passage) bool { return answer(c, p) })
				if !near(tally[mace.Matched]+tally[mace.Unstarted], c.Requests, w.missing.in()) {
					t.Errorf("%d requests, %+v unseen, and by status these answers: %v", c.Requests, w.missing, tally)
				}
				if got := w.tally(mace.Egress, func(p *mace.Passage) bool { return question(c, p) }); !near(got[mace.Matched], c.Requests, w.missing.out()) {
					t.Errorf("%d requests, %+v unseen, and by status these: %v", c.Requests, w.missing, got)
				}
			})
		}
	}
}

// passAll attaches an XDP program that lets everything pass.
func passAll(t *testing.T, l *lab.Lab, host, name string) {
	t.Helper()
	const xdpPass = 2
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type:         ebpf.XDP,
		License:      "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, xdpPass), asm.Return()},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Close() })
	dev := device(t, l, host, name)
	var attached link.Link
	err = l.Do(host, func() (err error) {
		attached, err = link.AttachXDP(link.XDPOptions{Program: program, Interface: dev.Index, Flags: link.XDPDriverMode})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { attached.Close() })
}
