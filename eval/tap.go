package eval

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"tare/lab"
)

// tap is the referee: a packet socket on the host's NIC whose times are the kernel's own. A received packet carries
// the stamp that the kernel gave it when it came in; of a sent one the kernel hands over a copy, stamped, just before it
// gives the packet to the driver. Making that copy delays the packet by about a us after the stamp, so the tap's RTTs
// are that much too long: tapShare measures it.
type tap struct {
	fd      int
	buffer  []byte
	control []byte
}

// tapBufferBytes holds a whole run, so that nobody wakes up to read during it: 20,000 packets at some 1,300 bytes each.
const tapBufferBytes = 32 << 20

// openTap begins to listen. With ipBytes above 0 it takes only ICMP echo packets of that length, from the IP header on:
// NAT may change a packet's identifier, but never its length, so a length of its own tells the measured tool's.
func openTap(l *lab.Lab, ifindex, ipBytes int) (*tap, error) {
	t := &tap{buffer: make([]byte, 256), control: make([]byte, 128)}
	err := l.Do(lab.Host, func() (err error) {
		t.fd, err = openPacketSocket(ifindex, echoFilter(ipBytes))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("tapping %s: %w", lab.NIC, err)
	}
	return t, nil
}

func openPacketSocket(ifindex int, filter []unix.SockFilter) (_ int, err error) {
	// Protocol 0 receives nothing until bind: the filter is there before the first packet.
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, fmt.Errorf("opening a packet socket: %w", err)
	}
	defer func() {
		if err != nil {
			unix.Close(fd)
		}
	}()
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &program); err != nil {
		return -1, fmt.Errorf("attaching the filter: %w", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1); err != nil {
		return -1, fmt.Errorf("asking for stamps: %w", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, tapBufferBytes); err != nil {
		return -1, fmt.Errorf("asking for %d bytes of buffer: %w", tapBufferBytes, err)
	}
	// Only a socket for all protocols is shown what is sent.
	address := unix.SockaddrLinklayer{Protocol: 0x0300, Ifindex: ifindex} // htons(ETH_P_ALL)
	if err := unix.Bind(fd, &address); err != nil {
		return -1, fmt.Errorf("binding: %w", err)
	}
	return fd, nil
}

// echoFilter is classic BPF over what follows the link header: IPv4, ICMP, echo or its reply, and the length if one is
// given. What it refuses is not copied, so that a flood beside the measured packets does not fill the buffer.
func echoFilter(ipBytes int) []unix.SockFilter {
	const (
		loadByte = unix.BPF_LD | unix.BPF_B | unix.BPF_ABS
		loadHalf = unix.BPF_LD | unix.BPF_H | unix.BPF_ABS
		and      = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
		equal    = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		give     = unix.BPF_RET | unix.BPF_K
	)
	length := []unix.SockFilter{{Code: loadHalf, K: 2}, {Code: equal, K: uint32(ipBytes), Jf: 4}}
	if ipBytes <= 0 {
		length = []unix.SockFilter{{Code: loadHalf, K: 2}, {Code: loadHalf, K: 2}} // says nothing, keeps the distances
	}
	filter := []unix.SockFilter{
		{Code: loadByte, K: 0},
		{Code: and, K: 0xf0},
		{Code: equal, K: 0x40, Jf: 8}, // IPv4
		{Code: loadByte, K: 9},
		{Code: equal, K: unix.IPPROTO_ICMP, Jf: 6},
	}
	filter = append(filter, length...)
	return append(filter, []unix.SockFilter{
		{Code: loadByte, K: 20}, // an IPv4 header without options: the tools send no others
		{Code: equal, K: icmpEcho, Jt: 1},
		{Code: equal, K: icmpEchoReply, Jf: 1},
		{Code: give, K: 0xffff},
		{Code: give, K: 0},
	}...)
}

// drain reads all packets that have come since the last call.
func (t *tap) drain(f func(tapped)) error {
	for {
		n, controlBytes, _, from, err := unix.Recvmsg(t.fd, t.buffer, t.control, 0)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return nil
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return fmt.Errorf("reading the tap: %w", err)
		}
		packet, ok := parseTapped(t.buffer[:n])
		if !ok {
			continue
		}
		if link, ok := from.(*unix.SockaddrLinklayer); ok {
			packet.Outgoing = link.Pkttype == unix.PACKET_OUTGOING
		}
		if packet.RealNS, err = stampOf(t.control[:controlBytes]); err != nil {
			return err
		}
		f(packet)
	}
}

// stampOf finds the kernel's stamp in a packet's control messages.
func stampOf(control []byte) (realNS int64, err error) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return 0, fmt.Errorf("reading a control message: %w", err)
	}
	for _, m := range messages {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SCM_TIMESTAMPNS &&
			len(m.Data) >= int(unsafe.Sizeof(unix.Timespec{})) {
			return (*unix.Timespec)(unsafe.Pointer(&m.Data[0])).Nano(), nil
		}
	}
	return 0, errors.New("reading the tap: a packet without a stamp")
}

// dropped is how many packets found no room since the last call.
func (t *tap) dropped() (uint32, error) {
	statistics, err := unix.GetsockoptTpacketStats(t.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err != nil {
		return 0, fmt.Errorf("asking the tap for its losses: %w", err)
	}
	return statistics.Drops, nil
}

func (t *tap) close() { unix.Close(t.fd) }

// realMinusMono is how far the clock of stamps is ahead of the clock of eBPF programs: the narrowest of some readings, which
// is good to some 20 ns.
func realMinusMono() int64 {
	best, ahead := int64(1<<62), int64(0)
	for range 64 {
		var before, real, after unix.Timespec
		_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &before)
		_ = unix.ClockGettime(unix.CLOCK_REALTIME, &real)
		_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &after)
		if width := after.Nano() - before.Nano(); width < best {
			best, ahead = width, real.Nano()-before.Nano()-width/2
		}
	}
	return ahead
}

// settle is how long the last packet's copy may take to reach the tap.
const settle = 5 * time.Millisecond
