package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// These tests need root, and fail without it: a test that is skipped unnoticed is none.
func TestMain(m *testing.M) {
	if role := os.Getenv(childRole); role != "" {
		childMain(role)
	}
	removeStaleTestLabs()
	os.Exit(m.Run())
}

// Test labs carry the pid of their test, so that the next run removes what a killed one left.
var testLabs int

func testLabName() string {
	testLabs++
	return fmt.Sprintf("test-%d-%d", os.Getpid(), testLabs)
}

func removeStaleTestLabs() {
	names, _ := List()
	for _, name := range names {
		var pid, n int
		if _, err := fmt.Sscanf(name, "test-%d-%d", &pid, &n); err != nil {
			continue
		}
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); errors.Is(err, os.ErrNotExist) {
			_, _ = Down(name)
		}
	}
}

// up makes a lab for one test and makes sure that it leaves nothing.
func up(t *testing.T, options Options) *Lab {
	t.Helper()
	options.Name = testLabName()
	l, err := Up(context.Background(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Down(); err != nil {
			t.Error(err)
		}
		checkNothingLeft(t, l.Name())
	})
	return l
}

func checkNothingLeft(t *testing.T, name string) {
	t.Helper()
	for _, pattern := range []string{netnsDir + "/tare-" + name + "-*", stateDir + "/" + name + ".*"} {
		if left, _ := filepath.Glob(pattern); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(mounts), "/tare-"+name+"-") {
		t.Errorf("left behind: a mount of a namespace of %s", name)
	}
}

func run(t *testing.T, l *Lab, host string, argv ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	out, err := l.Command(ctx, host, argv...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s in %s: %v\n%s", strings.Join(argv, " "), host, err, out)
	}
	return string(out)
}

// peerSeen sends a datagram from host to the remote at addr and returns the source address that arrives.
func peerSeen(t *testing.T, l *Lab, host string, addr netip.Addr) netip.Addr {
	t.Helper()
	var receiver net.PacketConn
	err := l.Do(Remote, func() (err error) {
		receiver, err = net.ListenPacket("udp", netip.AddrPortFrom(addr, 0).String())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer receiver.Close()
	err = l.Do(host, func() error {
		conn, err := net.Dial("udp", receiver.LocalAddr().String())
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = conn.Write([]byte("who am I"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := receiver.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	_, from, err := receiver.ReadFrom(make([]byte, 64))
	if err != nil {
		t.Fatalf("nothing arrives from %s at %s: %v", host, addr, err)
	}
	return from.(*net.UDPAddr).AddrPort().Addr().Unmap()
}

func TestNetworks(t *testing.T) {
	for _, tt := range []struct {
		network Network
		masks   bool // the remote sees the host's address instead of the container's
		mtu     int  // of eth0
		remote4 string
		first4  string
		first6  string
	}{
		{NetworkBridge, true, 1500, "10.78.0.2", "10.77.0.2", "fd77::2"},
		{NetworkVXLAN, false, 1450, "10.77.0.254", "10.77.0.2", "fd77::2"},
		{NetworkMacvlan, false, 1500, "10.78.0.2", "10.78.0.11", "fd78::b"},
	} {
		t.Run(string(tt.network), func(t *testing.T) {
			l := up(t, Options{Network: tt.network, Containers: 2})
			if got := l.RemoteAddr4().String(); got != tt.remote4 {
				t.Errorf("remote address %s, want %s", got, tt.remote4)
			}
			if got4, got6 := l.ContainerAddr4(1).String(), l.ContainerAddr6(1).String(); got4 != tt.first4 || got6 != tt.first6 {
				t.Errorf("addresses of c1: %s %s, want %s %s", got4, got6, tt.first4, tt.first6)
			}
			for _, pair := range [][2]netip.Addr{
				{l.RemoteAddr4(), l.HostAddr4()}, {l.RemoteAddr6(), l.HostAddr6()},
			} {
				remote, host := pair[0], pair[1]
				for i := 1; i <= l.Containers(); i++ {
					// The first of one packet: no neighbour must be looked for, no address must be tentative.
					run(t, l, Container(i), "ping", "-c1", "-W5", remote.String())
					own := l.ContainerAddr4(i)
					if remote.Is6() {
						own = l.ContainerAddr6(i)
					}
					want := own
					if tt.masks {
						want = host
					}
					if got := peerSeen(t, l, Container(i), remote); got != want {
						t.Errorf("the remote sees c%d as %s, want %s", i, got, want)
					}
				}
			}
			run(t, l, "c1", "ping", "-c1", "-W5", l.ContainerAddr4(2).String())
			run(t, l, "c1", "ping", "-c1", "-W5", l.ContainerAddr6(2).String())
			run(t, l, Host, "ping", "-c1", "-W5", l.RemoteNICAddr4().String())

			status, err := ReadStatus(l.Name())
			if err != nil {
				t.Fatal(err)
			}
			eth0 := deviceOf(t, status, Container(1), ContainerDevice)
			if eth0.MTU != tt.mtu {
				t.Errorf("MTU of eth0 is %d, want %d", eth0.MTU, tt.mtu)
			}
			if !status.Complete || len(status.Namespaces) != 4 {
				t.Errorf("complete %t with %d namespaces, want true with 4", status.Complete, len(status.Namespaces))
			}
			// The largest packet passes, whole.
			payload := fmt.Sprint(tt.mtu - 28)
			run(t, l, "c1", "ping", "-c1", "-W5", "-M", "do", "-s", payload, l.RemoteAddr4().String())
		})
	}
}

func TestVXLANEncapsulatesAtTheNIC(t *testing.T) {
	l := up(t, Options{Network: NetworkVXLAN})
	before := nicBytes(t, l)
	run(t, l, "c1", "ping", "-c1", "-W5", "-s", "1000", l.RemoteAddr4().String())
	// 1000 bytes of payload, ICMP (8), IPv4 (20), Ethernet (14), and the tunnel.
	if got := nicBytes(t, l) - before; got < 1042+vxlanOverheadBytes {
		t.Errorf("the NIC sent %d bytes, want at least %d", got, 1042+vxlanOverheadBytes)
	}
}

func nicBytes(t *testing.T, l *Lab) (sent int) {
	t.Helper()
	err := inNetNSWithSysfs(l.NetNSPath(Host), func() error {
		text, err := os.ReadFile("/sys/class/net/" + NIC + "/statistics/tx_bytes")
		if err == nil {
			_, err = fmt.Sscan(string(text), &sent)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sent
}

func TestPublishedPort(t *testing.T) {
	l := up(t, Options{Publish: true})
	for _, target := range []netip.Addr{l.HostAddr4(), l.HostAddr6()} {
		var listener net.Listener
		err := l.Do("c1", func() (err error) {
			listener, err = net.Listen("tcp", fmt.Sprintf(":%d", PublishedTarget))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			if conn, err := listener.Accept(); err == nil {
				fmt.Fprint(conn, conn.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap())
				conn.Close()
			}
		}()
		seen := make([]byte, 64)
		var n int
		err = l.Do(Remote, func() error {
			conn, err := net.DialTimeout("tcp", netip.AddrPortFrom(target, PublishedPort).String(), 5*time.Second)
			if err != nil {
				return err
			}
			defer conn.Close()
			n, err = conn.Read(seen)
			return err
		})
		listener.Close()
		if err != nil {
			t.Fatalf("connecting to the published port of %s: %v", target, err)
		}
		want := l.RemoteAddr4()
		if target.Is6() {
			want = l.RemoteAddr6()
		}
		if got := string(seen[:n]); got != want.String() {
			t.Errorf("the container sees its client as %s, want %s", got, want)
		}
	}
}
