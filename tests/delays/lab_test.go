package delays

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"tare/lab"
	"tare/mace/macetest"
)

var labs int

// labName carries the process, so that the next run removes what a killed one left.
func labName() string {
	labs++
	return fmt.Sprintf("delays-%d-%d", os.Getpid(), labs)
}

func removeStaleLabs() {
	names, _ := lab.List()
	for _, name := range names {
		var pid, n int
		if _, err := fmt.Sscanf(name, "delays-%d-%d", &pid, &n); err != nil {
			continue
		}
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); errors.Is(err, os.ErrNotExist) {
			_, _ = lab.Down(name)
		}
	}
}

// goFirst makes realtime processes of this one and its children: tools and echo server have little to do, and what they
// wait for a CPU, behind whatever else the machine does, is in every round trip.
func goFirst() error {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, thread := range threads {
		tid, err := strconv.Atoi(thread.Name())
		if err == nil {
			err = unix.SchedSetAttr(tid, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: 2}, 0)
		}
		if err != nil {
			return fmt.Errorf("making thread %s a realtime one (CAP_SYS_NICE, and a realtime budget in its control group): %w", thread.Name(), err)
		}
	}
	return nil
}

// bed is a lab with an echo server on its remote host.
type bed struct {
	lab    *lab.Lab
	server *macetest.Echo
}

// newBed makes a lab with one delay, or with none if it is "".
func newBed(t *testing.T, delay string, xdp bool) *bed {
	t.Helper()
	options := lab.Options{Name: labName()}
	if delay != "" {
		d, err := lab.ParseDelay(delay)
		if err != nil {
			t.Fatal(err)
		}
		options.Delays = []lab.Delay{d}
	}
	l, err := lab.Up(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{lab: l}
	t.Cleanup(func() {
		if b.server != nil {
			b.server.Close()
		}
		if err := l.Down(); err != nil {
			t.Error(err)
		}
	})
	if b.server, err = macetest.StartEcho(l, lab.Remote); err != nil {
		t.Fatal(err)
	}
	if xdp {
		attachXDP(t, l)
	}
	return b
}

// attachXDP attaches a program that lets everything pass to c1's device.
func attachXDP(t *testing.T, l *lab.Lab) {
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
	var attached link.Link
	err = l.Do(lab.Container(1), func() error {
		device, err := net.InterfaceByName(lab.ContainerDevice)
		if err != nil {
			return err
		}
		attached, err = link.AttachXDP(link.XDPOptions{Program: program, Interface: device.Index, Flags: link.XDPDriverMode})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { attached.Close() })
}

// keepOff runs fn, and what it starts, on all CPUs but the last, which a busy process has.
func keepOff(t *testing.T, fn func()) {
	t.Helper()
	var all, rest unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	last := -1
	for cpu := range 64 * len(all) {
		if all.IsSet(cpu) {
			last = cpu
		}
	}
	rest = all
	rest.Clear(last)
	if rest.Count() == 0 {
		t.Fatal("the environment has one CPU: the busy process and the tool need one each")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.SchedSetaffinity(0, &rest); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.SchedSetaffinity(0, &all) }()
	fn()
}
