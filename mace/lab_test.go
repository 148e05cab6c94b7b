package mace_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"tare/container"
	"tare/lab"
	"tare/mace"
	"tare/mace/macetest"
)

// These tests need root, and fail without it: a test that is skipped unnoticed is none.
func TestMain(m *testing.M) {
	macetest.Main()
	removeStaleLabs()
	os.Exit(m.Run())
}

// Labs carry the pid of their test, so that the next run removes what a killed one left.
const labPattern = "mace-test-%d-%d"

var labs int

func removeStaleLabs() {
	names, _ := lab.List()
	for _, name := range names {
		var pid, n int
		if _, err := fmt.Sscanf(name, labPattern, &pid, &n); err != nil {
			continue
		}
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); errors.Is(err, os.ErrNotExist) {
			_, _ = lab.Down(name)
		}
	}
}

// up makes a lab that ends with the test.
func up(t *testing.T, options lab.Options) *lab.Lab {
	t.Helper()
	labs++
	options.Name = fmt.Sprintf(labPattern, os.Getpid(), labs)
	options.RPS = options.RPS || os.Getenv(blindTests) != "" // the only way for a packet onto another process
	l, err := lab.Up(context.Background(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Down(); err != nil {
			t.Error(err)
		}
		if left, _ := filepath.Glob("/run/netns/tare-" + l.Name() + "-*"); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
	return l
}

// device is a device of the lab's host as the engine wants to know it.
func device(t *testing.T, l *lab.Lab, host, name string) mace.Device {
	t.Helper()
	cookie, err := l.NetNSCookie(host)
	if err != nil {
		t.Fatal(err)
	}
	d := mace.Device{NetNSCookie: cookie, Name: name}
	err = l.Do(host, func() error {
		link, err := net.InterfaceByName(name)
		if err == nil {
			d.Index = link.Index
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// echo starts an echo server on the remote host.
func echo(t *testing.T, l *lab.Lab, host string) *macetest.Echo {
	t.Helper()
	server, err := macetest.StartEcho(l, host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return server
}

// client starts a client that dies with the test.
func client(t *testing.T, l *lab.Lab, host string, c macetest.Client, inherited ...*os.File) *macetest.Process {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	p, err := macetest.Start(ctx, l, host, c, inherited...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// exchange runs a client from beginning to end.
func exchange(t *testing.T, l *lab.Lab, host string, c macetest.Client) macetest.Result {
	t.Helper()
	return finish(t, client(t, l, host, c), c)
}

func finish(t *testing.T, p *macetest.Process, c macetest.Client) macetest.Result {
	t.Helper()
	result, err := p.Finish()
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Replies) != c.Requests {
		t.Fatalf("%d of %d requests were answered: the lab's network is broken", len(result.Replies), c.Requests)
	}
	return result
}

// remote is where the lab's containers find the remote host.
func remote(l *lab.Lab, v6 bool, port uint16) netip.AddrPort {
	if v6 {
		return netip.AddrPortFrom(l.RemoteAddr6(), port)
	}
	return netip.AddrPortFrom(l.RemoteAddr4(), port)
}

// devicePackets is what the host's devices have counted by themselves.
func devicePackets(t *testing.T, l *lab.Lab, host string) (tx, rx uint64) {
	t.Helper()
	devices, err := container.Devices(l.NetNSPath(host))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range devices {
		tx += d.TxPackets
		rx += d.RxPackets
	}
	return tx, rx
}

// command runs a command in the lab's host.
func command(t *testing.T, l *lab.Lab, host string, argv ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	out, err := l.Command(ctx, host, argv...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v in %s: %v\n%s", argv, host, err, out)
	}
	return string(out)
}
