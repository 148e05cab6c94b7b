package main

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// transferBytes are exchanged in either direction; TARE_NET_BYTES=1G is the long run.
func transferBytes(t *testing.T, short int64) int64 {
	t.Helper()
	text := os.Getenv("TARE_NET_BYTES")
	if text == "" {
		return short
	}
	n, err := strconv.ParseInt(strings.TrimSuffix(text, "G"), 10, 64)
	if err != nil || n < 1 {
		t.Fatalf("TARE_NET_BYTES=%s: want bytes, or gigabytes such as 1G", text)
	}
	if strings.HasSuffix(text, "G") {
		n <<= 30
	}
	return n
}

// newNet makes a net with a NIC and one pipe, web, with 10.50.0.2 and fd50::2.
func newNet(t *testing.T, nic string) testNet {
	t.Helper()
	n := testNet{t, freshName("i"), dockNetPrograms(t)}
	t.Cleanup(func() { // before the NIC's interface goes
		if output, err := n.command("down").CombinedOutput(); err != nil {
			t.Errorf("down: %v\n%s", err, output)
		}
	})
	n.run("up", "--nic", nic)
	n.run("add", "web", "--ip", "10.50.0.2/24", "--ip6", "fd50::2/64")
	return n
}

func (n testNet) program(pipe, program string, args ...string) []string {
	return append([]string{"exec", pipe, "--", filepath.Join(n.build, program)}, args...)
}

// serve starts a server in a pipe's container and waits until it listens.
func (n testNet) serve(pipe, program string, args ...string) {
	n.Helper()
	n.start(n.program(pipe, program, args...)...)
	n.waitAttached(pipe, true)
	time.Sleep(50 * time.Millisecond) // it listens the moment after; who comes too early is refused
}

// TestNetInterop lets DockLib talk with Linux's own TCP/IP through an XDP socket on a veth.
func TestNetInterop(t *testing.T) {
	o := newOutside(t, "nic-xdp", 1500, false)
	n := newNet(t, "af_xdp:"+o.nic)

	t.Run("server", func(t *testing.T) {
		n := testNet{t, n.name, n.build}
		n.serve("web", "docknet-echo", "7")
		for _, address := range []string{"10.50.0.2", "fd50::2"} { // ARP, neighbour discovery, ICMP, fragments
			if out := o.output("ping", "-c", "3", "-i", "0.01", "-W", "5", "-s", "4000", address); !strings.Contains(out, " 0% packet loss") {
				t.Errorf("ping %s:\n%s", address, out)
			}
		}
		if out := o.output("ip", "-6", "neigh", "show", "fd50::2"); !strings.Contains(out, "lladdr") {
			t.Errorf("the neighbour fd50::2: %s", out)
		}
		for _, address := range []string{"10.50.0.2:7", "[fd50::2]:7"} {
			t.Run(address, func(t *testing.T) {
				exchange(t, o.mustDial(address), transferBytes(t, 32<<20))
			})
		}
		t.Run("netcat", func(t *testing.T) {
			text := bytes.Repeat([]byte("what comes back is what was sent\n"), 30000)
			cmd := o.command("nc", "-N", "10.50.0.2", "7")
			cmd.Stdin = bytes.NewReader(text)
			if output, err := cmd.Output(); err != nil || !bytes.Equal(output, text) {
				t.Errorf("nc: %v; %d bytes came back of %d", err, len(output), len(text))
			}
		})
		t.Run("datagrams", func(t *testing.T) { testDatagrams(t, o) })
		t.Run("tcp states", func(t *testing.T) { testTCPStates(t, o) })
	})
	t.Run("curl", func(t *testing.T) {
		n := testNet{t, n.name, n.build}
		n.waitAttached("web", false)
		n.serve("web", "docknet-bench", "server", "-p", "80", "-s", "3000000")
		for _, url := range []string{"http://10.50.0.2/", "http://[fd50::2]/"} {
			// Three requests: the second and third go through the connection of the first.
			body := o.output("curl", "--silent", "--show-error", "--max-time", "60", url, url, url)
			if body != strings.Repeat("x", 9_000_000) {
				t.Errorf("curl %s: %d bytes, or not those of the server", url, len(body))
			}
		}
	})
	t.Run("nginx", func(t *testing.T) {
		n := testNet{t, n.name, n.build}
		n.waitAttached("web", false)
		content := make([]byte, 5_000_000)
		_, _ = rand.NewChaCha8([32]byte{2}).Read(content)
		startNginx(t, o, content)
		for _, address := range []string{"10.50.0.1", "fd50::1"} {
			answer, err := n.command(n.program("web", "docknet-check", "get", address, "80", "/file")...).Output()
			header, body, _ := bytes.Cut(answer, []byte("\r\n\r\n"))
			if err != nil || !bytes.Equal(body, content) {
				t.Errorf("from nginx at %s: %v; %d bytes of %d\n%.300s", address, err, len(body), len(content), header)
			}
		}
		n.run(n.program("web", "docknet-check", "refused", "10.50.0.1", "81")...)
		// Keep-alive connections of an HTTP client.
		n.run(n.bench("web", "client", "-p", "80", "-m", "h", "-d", "0.3", "-n", "4", "10.50.0.1")...)
	})
	if nic := n.stats().NIC; nic.RxBadChecksum != 0 {
		t.Errorf("%d packets with a wrong checksum came from the NIC", nic.RxBadChecksum)
	}
}

// TestNetJumboFrames: an XDP socket cannot have them, a packet socket can.
func TestNetJumboFrames(t *testing.T) {
	o := newOutside(t, "nic-jumbo", 9000, false)
	n := newNet(t, "af_packet:"+o.nic)
	n.serve("web", "docknet-echo", "7")
	exchange(t, o.mustDial("10.50.0.2:7"), transferBytes(t, 64<<20))
	exchange(t, o.mustDial("[fd50::2]:7"), transferBytes(t, 8<<20))
}

func TestNetTap(t *testing.T) {
	n := newNet(t, "tap:nic-tap")
	host := &outside{T: t}
	host.ip("addr", "add", "10.50.0.1/24", "dev", "nic-tap")
	n.serve("web", "docknet-echo", "7")
	conn, err := net.DialTimeout("tcp", "10.50.0.2:7", 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	exchange(t, conn.(*net.TCPConn), transferBytes(t, 16<<20))
}

// TestNetFaultyWire loses, repeats and reorders one packet in a hundred each, in both directions.
func TestNetFaultyWire(t *testing.T) {
	for _, mtu := range []int{1500, 9000} {
		t.Run(fmt.Sprint(mtu), func(t *testing.T) {
			o := newOutside(t, fmt.Sprintf("nic-f%d", mtu), mtu, true)
			n := newNet(t, "af_packet:"+o.nic)
			n.serve("web", "docknet-echo", "7")
			// With these losses it makes some 0.6 MB/s: a gigabyte would take half an hour.
			exchange(t, o.mustDial("10.50.0.2:7"), min(transferBytes(t, 2<<20), 64<<20))
			// A loss near the end of a connection is repaired by lwIP's timer only, which now and then does not: so
			// many connections are for the long run, until that is mended.
			if os.Getenv("TARE_NET_BYTES") != "" {
				for range 100 {
					exchange(t, o.mustDial("[fd50::2]:7"), 40<<10)
				}
			}
		})
	}
}

// testDatagrams: UDP within and beyond the MTU, which both sides fragment.
func testDatagrams(t *testing.T, o *outside) {
	for _, address := range []string{"10.50.0.2:7", "[fd50::2]:7"} {
		var conn net.Conn
		err := o.do(func() (err error) {
			conn, err = net.Dial("udp", address)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		for _, size := range []int{1, 1000, 1452, 1472, 8000, 60000} {
			sent, received := bytes.Repeat([]byte{byte(size), 7}, size)[:size], make([]byte, 65536)
			if _, err := conn.Write(sent); err != nil {
				t.Fatal(err)
			}
			_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
			if got, err := conn.Read(received); err != nil || !bytes.Equal(received[:got], sent) {
				t.Errorf("a datagram of %d bytes to %s: %d bytes back, %v", size, address, got, err)
			}
		}
	}
}

// testTCPStates: what is rare in a transfer. The server echoes.
func testTCPStates(t *testing.T, o *outside) {
	t.Run("refused", func(t *testing.T) {
		if conn, err := o.dial("10.50.0.2:8"); err == nil || !strings.Contains(err.Error(), "refused") {
			t.Errorf("a port without a listener: %v, %v", conn, err)
		}
	})
	t.Run("reset and come again from the same port", func(t *testing.T) {
		from := *o
		from.dialer.LocalAddr = &net.TCPAddr{IP: net.IPv4(10, 50, 0, 1), Port: 40000}
		for range 3 {
			conn := from.mustDial("10.50.0.2:7")
			if _, err := conn.Write(bytes.Repeat([]byte("r"), 100_000)); err != nil {
				t.Fatal(err)
			}
			_ = conn.SetLinger(0) // close sends a reset
			conn.Close()
		}
		exchange(t, from.mustDial("10.50.0.2:7"), 10_000)
	})
	t.Run("zero window", func(t *testing.T) {
		conn := o.mustDial("10.50.0.2:7")
		_ = conn.SetReadBuffer(4096)
		// Nobody reads, so all buffers on the way fill up, and both windows close.
		_ = conn.SetWriteDeadline(time.Now().Add(1500 * time.Millisecond))
		random, sent := rand.NewChaCha8([32]byte{3}), new(bytes.Buffer)
		written, err := io.Copy(onlyWriter{conn}, io.TeeReader(io.LimitReader(random, 256<<20), sent))
		if err == nil {
			t.Fatalf("%d bytes were taken by somebody who reads none", written)
		}
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		go func() { _ = conn.CloseWrite() }()
		echoed, err := io.ReadAll(conn)
		if err != nil || int64(len(echoed)) < written || !bytes.HasPrefix(sent.Bytes(), echoed) {
			t.Errorf("behind the zero window: %d bytes of %d, %v", len(echoed), written, err)
		}
	})
	t.Run("half-close, then a long way to go", func(t *testing.T) {
		conn := o.mustDial("10.50.0.2:7")
		if _, err := conn.Write([]byte("last words")); err != nil {
			t.Fatal(err)
		}
		_ = conn.CloseWrite()
		_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
		if echoed, err := io.ReadAll(conn); err != nil || string(echoed) != "last words" {
			t.Errorf("after a half-close: %q, %v", echoed, err)
		}
	})
	t.Run("keep-alive", func(t *testing.T) {
		conn := o.mustDial("10.50.0.2:7")
		err := conn.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second, Count: 1})
		if err != nil {
			t.Fatal(err)
		}
		before := tcpInfo(t, conn)
		time.Sleep(2500 * time.Millisecond) // an unanswered probe would have ended the connection
		after := tcpInfo(t, conn)
		if after.Segs_out == before.Segs_out || after.Segs_in == before.Segs_in {
			t.Errorf("no probe, or no answer: %d segments sent, %d received while idle", after.Segs_out-before.Segs_out, after.Segs_in-before.Segs_in)
		}
		exchange(t, conn, 1000)
	})
	t.Run("many short connections", func(t *testing.T) {
		for range 200 {
			conn := o.mustDial("10.50.0.2:7")
			if _, err := conn.Write([]byte("in and out")); err != nil {
				t.Fatal(err)
			}
			_ = conn.CloseWrite()
			_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
			if echoed, err := io.ReadAll(conn); err != nil || string(echoed) != "in and out" {
				t.Fatalf("a short connection: %q, %v", echoed, err)
			}
			conn.Close()
		}
	})
}

func tcpInfo(t *testing.T, conn *net.TCPConn) (info unix.TCPInfo) {
	t.Helper()
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	_ = raw.Control(func(fd uintptr) {
		var got *unix.TCPInfo
		if got, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			info = *got
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// startNginx serves one file, /file, outside, until the test ends.
func startNginx(t *testing.T, o *outside, content []byte) {
	t.Helper()
	dir := t.TempDir()
	config := "daemon off; master_process off; user root; pid nginx.pid; error_log error.log;\n" +
		"events {}\nhttp { access_log off; client_body_temp_path b; proxy_temp_path p; fastcgi_temp_path f;\n" +
		"uwsgi_temp_path u; scgi_temp_path s; server { listen 80; listen [::]:80; root .; index file; } }\n"
	for name, text := range map[string][]byte{"nginx.conf": []byte(config), "file": content} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	nginx, err := exec.LookPath("nginx")
	if err != nil {
		nginx = "/usr/sbin/nginx" // not everybody's PATH
	}
	var said bytes.Buffer
	cmd := o.command(nginx, "-p", dir, "-c", "nginx.conf", "-e", "error.log")
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for range 200 {
		if conn, err := o.dial("10.50.0.1:80"); err == nil {
			conn.Close()
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("nginx does not answer: %s", &said)
}
