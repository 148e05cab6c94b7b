package prober

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	RunIfAsked()
	os.Exit(m.Run())
}

// prober runs the prober in a process of its own, as always: its system calls hold Go's scheduler up, which in one process
// with the servers below could wait for each other.
func prober(t *testing.T, args string) ([]byte, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/proc/self/exe", append([]string{Command}, strings.Fields(args)...)...)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, complaint.String())
	}
	return out, err
}

func TestBadArguments(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"", "is neither server nor client"},
		{"--role=client", "--port=0 is no port"},
		{"--role=client --port=65536", "--port=65536 is no port"},
		{"--role=client --port=1 --protocol=sctp", "is neither tcp nor udp"},
		{"--role=client --port=1 --size=13", "14 to 65507 bytes are possible"},
		{"--role=client --port=1 --rate=-1", "0 to 1000000 messages per second"},
		{"--role=client --port=1 --duration=0s", "--duration must be more than 0"},
		{"--role=client --port=1 --addr=example.org", "is no IP address"},
		{"--role=client --port=1 more", "unexpected argument"},
		{"--role=client --port=1 --addr=127.0.0.1", "connecting to 127.0.0.1 port 1: connection refused"},
		{"--role=server --port=9 --addr=192.0.2.1", "binding to 192.0.2.1 port 9: cannot assign requested address"},
	} {
		if err := errorOf(prober(t, c.args)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got error %v, want %q", c.args, err, c.want)
		}
	}
}

func errorOf(_ []byte, err error) error { return err }

// answer accepts one connection and lets fn treat it.
func answer(t *testing.T, fn func(net.Conn)) uint {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		if connection, err := listener.Accept(); err == nil {
			fn(connection)
			connection.Close()
		}
	}()
	return uint(listener.Addr().(*net.TCPAddr).Port)
}

func TestClientOfEcho(t *testing.T) {
	port := answer(t, func(c net.Conn) { _, _ = io.Copy(c, c) })
	out, err := prober(t, fmt.Sprintf("--role=client --port=%d --size=100 --duration=50ms --warmup=5ms", port))
	if err != nil {
		t.Fatal(err)
	}
	r, err := ParseResult(out)
	if err != nil {
		t.Fatal(err)
	}
	// Round trips follow one another: their sum is within the wall time, and their histogram has them all.
	if r.Messages == 0 || r.SumNS > r.WallNS || uint64(r.Histogram.TotalCount()) != r.Messages || r.Lost != 0 {
		t.Errorf("%+v", r)
	}
}

func TestClientOfNoEcho(t *testing.T) {
	for want, fn := range map[string]func(net.Conn){
		"this is no echo server": func(c net.Conn) {
			_, _ = c.Write(bytes.Repeat([]byte{7}, 1000))
			_, _ = io.Copy(io.Discard, c)
		},
		"EOF":            func(c net.Conn) {},
		"unexpected EOF": func(c net.Conn) { _, _ = c.Read(make([]byte, 100)); _, _ = c.Write(make([]byte, 5)) },
	} {
		_, err := prober(t, fmt.Sprintf("--role=client --port=%d --duration=2s", answer(t, fn)))
		if err == nil || !strings.Contains(err.Error(), want) && !strings.Contains(err.Error(), "reset by peer") {
			t.Errorf("got error %v, want %q", err, want)
		}
	}
}

// Late echoes of a datagram that was given up are not taken for the next one's.
func TestLateDatagram(t *testing.T) {
	server, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		buffer := make([]byte, 100)
		for i := 0; ; i++ {
			n, from, err := server.ReadFromUDP(buffer)
			if err != nil {
				return
			}
			if i == 1 {
				time.Sleep(2 * datagramPatience)
			}
			_, _ = server.WriteToUDP(buffer[:n], from)
		}
	}()
	out, err := prober(t, fmt.Sprintf("--role=client --protocol=udp --port=%d --duration=1500ms", server.LocalAddr().(*net.UDPAddr).Port))
	if err != nil {
		t.Fatal(err)
	}
	r, err := ParseResult(out)
	if err != nil {
		t.Fatal(err)
	}
	if r.Lost < 1 || r.Messages < 2 {
		t.Errorf("%d lost, %d answered, slowest %d ns", r.Lost, r.Messages, r.Histogram.Max())
	}
}

func TestParseResultErrors(t *testing.T) {
	result := &Result{Messages: 1, Histogram: newHistogram()}
	var out bytes.Buffer
	if err := result.write(&out); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"":                             "reading the prober's result",
		`{"messages":1}`:               "reading the prober's histogram",
		`{"histogram":"HISTFAAAAAA="}`: "reading the prober's histogram",
		out.String():                   "1 messages, and 0 in the histogram",
	} {
		if _, err := ParseResult([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got error %v, want %q", text, err, want)
		}
	}
}

func FuzzParseResult(f *testing.F) {
	result := &Result{Messages: 1, Histogram: newHistogram()}
	_ = result.Histogram.RecordValue(12345)
	var out bytes.Buffer
	if err := result.write(&out); err != nil {
		f.Fatal(err)
	}
	f.Add(out.String())
	f.Add(`{"histogram":"x"}`)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseResult([]byte(text))
		if err != nil {
			return
		}
		if _, err := json.Marshal(r); err != nil {
			t.Error(err)
		}
	})
}
