package arm

import (
	"fmt"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// The program counts on at most this many readings of the clock, of at least 10 ns each: the verifier follows every
// one, and gives up at 8192 jumps.
const (
	maxDelay       = 30 * time.Microsecond
	fastestReading = 10 * time.Nanosecond
)

// delayProgram lets every packet pass, after it has watched the clock for d. A timer could not: it would put the packet
// into a queue and wake somebody up for it, which costs more than the effect that is to be added.
func delayProgram(d time.Duration) *ebpf.ProgramSpec {
	readings := int32(d/fastestReading) + 16
	return &ebpf.ProgramSpec{
		Name: "tare_delay", Type: ebpf.SchedCLS, License: "GPL",
		Instructions: asm.Instructions{
			asm.FnKtimeGetNs.Call(),
			asm.Mov.Reg(asm.R6, asm.R0),
			asm.Mov.Imm(asm.R7, readings),
			asm.FnKtimeGetNs.Call().WithSymbol("watch"),
			asm.Sub.Reg(asm.R0, asm.R6),
			asm.JGE.Imm(asm.R0, int32(d.Nanoseconds()), "pass"),
			asm.Sub.Imm(asm.R7, 1),
			asm.JNE.Imm(asm.R7, 0, "watch"),
			asm.Mov.Imm(asm.R0, int32(netlink.TC_ACT_OK)).WithSymbol("pass"),
			asm.Return(),
		},
	}
}

// delayOn holds up every packet that leaves by a device of the handle's namespace. The program goes with the device.
func delayOn(nl *netlink.Handle, device string, d time.Duration) error {
	if d == 0 {
		return nil
	}
	if d < 0 || d > maxDelay {
		return fmt.Errorf("a delay of %s: up to %s is possible", d, maxDelay)
	}
	link, err := nl.LinkByName(device)
	if err != nil {
		return fmt.Errorf("looking for %s: %w", device, err)
	}
	program, err := ebpf.NewProgram(delayProgram(d))
	if err != nil {
		return fmt.Errorf("loading the program that delays packets: %w", err)
	}
	defer program.Close() // the filter holds it
	qdisc := &netlink.GenericQdisc{QdiscType: "clsact", QdiscAttrs: netlink.QdiscAttrs{
		LinkIndex: link.Attrs().Index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT}}
	if err := nl.QdiscAdd(qdisc); err != nil {
		return fmt.Errorf("adding clsact to %s (needs the kernel's NET_SCH_INGRESS): %w", device, err)
	}
	filter := &netlink.BpfFilter{Fd: program.FD(), Name: "tare_delay", DirectAction: true, FilterAttrs: netlink.FilterAttrs{
		LinkIndex: link.Attrs().Index, Parent: netlink.HANDLE_MIN_EGRESS, Handle: 1, Priority: 1, Protocol: unix.ETH_P_ALL}}
	if err := nl.FilterAdd(filter); err != nil {
		return fmt.Errorf("attaching the delay to %s (needs the kernel's NET_CLS_BPF): %w", device, err)
	}
	return nil
}

// cannotDelay refuses where no device of the arm's own lies in the request's way alone.
func cannotDelay(o Options) error {
	if o.Delay == 0 {
		return nil
	}
	return fmt.Errorf("cannot add a delay of %s: only veth and bridge can", o.Delay)
}
