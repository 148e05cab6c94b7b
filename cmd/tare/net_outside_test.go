package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// outside is Linux's own TCP/IP beyond a net's NIC: a network namespace with 10.50.0.1 and fd50::1, at the other end of the
// veth that is the NIC.
type outside struct {
	*testing.T
	namespace string
	nic       string // the interface for --nic
	dialer    net.Dialer
}

// newOutside makes the namespace and the cable to it; faulty puts a wire into the cable that loses, reorders and repeats.
func newOutside(t *testing.T, nic string, mtu int, faulty bool) *outside {
	t.Helper()
	o := &outside{T: t, namespace: "out-" + nic, nic: nic, dialer: net.Dialer{Timeout: 20 * time.Second}}
	t.Cleanup(func() { // a veth goes with its peer, some time after the namespace
		_ = exec.Command("ip", "link", "del", nic).Run()
		_ = exec.Command("ip", "netns", "del", o.namespace).Run()
	})
	o.ip("netns", "add", o.namespace)
	size := strconv.Itoa(mtu)
	far := nic
	if faulty {
		far = nic + "-far"
		o.ip("link", "add", nic, "mtu", size, "type", "veth", "peer", "name", nic+"-near", "mtu", size)
		o.ip("link", "set", nic, "up")
		o.ip("link", "set", nic+"-near", "up")
	}
	o.ip("link", "add", far, "mtu", size, "type", "veth", "peer", "name", "eth0", "mtu", size, "netns", o.namespace)
	o.ip("link", "set", far, "up")
	inside := []string{"-n", o.namespace}
	for _, args := range []string{"link set lo up", "link set eth0 up", "addr add 10.50.0.1/24 dev eth0", "addr add fd50::1/64 dev eth0 nodad"} {
		o.ip(append(inside, strings.Fields(args)...)...)
	}
	// Between its own devices the kernel leaves checksums out, and segmentation; see docs/docknet.md.
	o.output("ethtool", "-K", "eth0", "tx", "off", "tso", "off", "gso", "off")
	if faulty {
		startFaultyWire(t, nic+"-near", far)
	}
	return o
}

func (o *outside) ip(args ...string) {
	o.Helper()
	if output, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		o.Fatalf("ip %s: %v\n%s", strings.Join(args, " "), err, output)
	}
}

// command prepares a command in the namespace.
func (o *outside) command(argv ...string) *exec.Cmd {
	return exec.CommandContext(o.Context(), "ip", append([]string{"netns", "exec", o.namespace}, argv...)...)
}

// output runs a command in the namespace; its standard error is part of a complaint only.
func (o *outside) output(argv ...string) string {
	o.Helper()
	cmd := o.command(argv...)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	output, err := cmd.Output()
	if err != nil {
		o.Fatalf("%s: %v\n%s%s", strings.Join(argv, " "), err, output, &complaint)
	}
	return string(output)
}

// do runs fn in the namespace: sockets that it makes belong there.
func (o *outside) do(fn func() error) error {
	runtime.LockOSThread()
	home, err := netns.Get()
	if err != nil {
		return err
	}
	defer home.Close()
	there, err := netns.GetFromName(o.namespace)
	if err != nil {
		return err
	}
	defer there.Close()
	if err := netns.Set(there); err != nil {
		return err
	}
	defer func() {
		if netns.Set(home) == nil {
			runtime.UnlockOSThread() // else the thread ends with its goroutine
		}
	}()
	return fn()
}

// dial connects from the namespace.
func (o *outside) dial(address string) (*net.TCPConn, error) {
	var conn net.Conn
	err := o.do(func() (err error) {
		dialer := o.dialer
		dialer.FallbackDelay = -1 // one address, and one goroutine: this one, which is in the namespace
		conn, err = dialer.DialContext(o.Context(), "tcp", address)
		return err
	})
	if err != nil {
		return nil, err
	}
	return conn.(*net.TCPConn), nil
}

func (o *outside) mustDial(address string) *net.TCPConn {
	o.Helper()
	conn, err := o.dial(address)
	if err != nil {
		o.Fatal(err)
	}
	o.Cleanup(func() { conn.Close() })
	return conn
}

// transferPatience bounds one exchange: for a gigabyte with losses on a slow machine.
const transferPatience = 10 * time.Minute

// exchange sends random bytes to an echo server and compares what comes back while it sends: both directions are full.
// It closes the sending side first, and expects the other side's end behind the last byte.
func exchange(t *testing.T, conn *net.TCPConn, size int64) {
	t.Helper()
	if err := conn.SetDeadline(time.Now().Add(transferPatience)); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	sent, sendErr := sha256.New(), make(chan error, 1)
	go func() {
		random := rand.NewChaCha8([32]byte{1})
		_, err := io.CopyBuffer(io.MultiWriter(onlyWriter{conn}, sent), io.LimitReader(random, size), make([]byte, 1<<18))
		if err == nil {
			err = conn.CloseWrite()
		}
		sendErr <- err
	}()
	received := sha256.New()
	n, err := io.CopyBuffer(received, onlyReader{conn}, make([]byte, 1<<18))
	if err != nil {
		t.Fatalf("receiving, after %d of %d bytes: %v", n, size, err)
	}
	if err := <-sendErr; err != nil {
		t.Fatalf("sending: %v", err)
	}
	if n != size || !bytes.Equal(sent.Sum(nil), received.Sum(nil)) {
		t.Fatalf("sent %d bytes %x, received %d bytes %x", size, sent.Sum(nil), n, received.Sum(nil))
	}
	t.Logf("%d bytes in either direction in %v", size, time.Since(start).Round(time.Millisecond))
}

// onlyWriter and onlyReader hide splice, which would read and write past the checksum.
type onlyWriter struct{ io.Writer }
type onlyReader struct{ io.Reader }

// startFaultyWire carries frames between two interfaces until the test ends. Of each direction's it loses one in a hundred,
// sends one in a hundred twice, and one in a hundred behind the next one. Always the same ones: a test's fate is not drawn.
func startFaultyWire(t *testing.T, a, b string) {
	t.Helper()
	ends := [2]int{}
	for i, name := range []string{a, b} {
		link, err := net.InterfaceByName(name)
		if err != nil {
			t.Fatal(err)
		}
		protocol := int(bigEndian(unix.ETH_P_ALL))
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, protocol)
		if err == nil {
			err = unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1)
		}
		if err == nil {
			err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 50_000})
		}
		if err == nil {
			err = unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: bigEndian(unix.ETH_P_ALL), Ifindex: link.Index})
		}
		if err != nil {
			t.Fatalf("a packet socket on %s: %v", name, err)
		}
		ends[i] = fd
	}
	done := make(chan struct{})
	var stopped [2]chan struct{}
	for i := range ends {
		stopped[i] = make(chan struct{})
		go func() {
			defer close(stopped[i])
			carry(ends[i], ends[1-i], rand.New(rand.NewPCG(uint64(i), 7)), done)
		}()
	}
	t.Cleanup(func() {
		close(done)
		for i := range ends {
			<-stopped[i]
		}
		unix.Close(ends[0])
		unix.Close(ends[1])
	})
}

func bigEndian(v uint16) uint16 { return v<<8 | v>>8 }

// carry is one direction of the faulty wire.
func carry(from, to int, random *rand.Rand, done <-chan struct{}) {
	frame := make([]byte, 1<<16)
	var late []byte
	for {
		select {
		case <-done:
			return
		default:
		}
		n, err := unix.Read(from, frame)
		if err != nil || n == 0 { // nothing came for a while; or an interface that has gone, until done
			if late != nil {
				_, _ = unix.Write(to, late)
				late = nil
			}
			continue
		}
		switch fate := random.IntN(100); {
		case fate == 0: // lost
			continue
		case fate == 1:
			_, _ = unix.Write(to, frame[:n])
		case fate == 2 && late == nil:
			late = bytes.Clone(frame[:n])
			continue
		}
		_, _ = unix.Write(to, frame[:n])
		if late != nil {
			_, _ = unix.Write(to, late)
			late = nil
		}
	}
}

// freshName is a net's name that no other test has.
func freshName(kind string) string { return fmt.Sprintf("%s%d", kind, syscall.Getpid()) }
