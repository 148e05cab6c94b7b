package load_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"tare/bench/arm"
	"tare/bench/load"
	"tare/container/containertest"
)

func start(t *testing.T, link *arm.Link, workload string, p load.Params) (load.Session, error) {
	t.Helper()
	w, err := load.Find(workload)
	if err != nil {
		t.Fatal(err)
	}
	session, err := w.Start(t.Context(), link, p)
	if err == nil {
		t.Cleanup(func() { _ = session.Close() })
	}
	return session, err
}

func wantError(t *testing.T, err error, pattern string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %q", pattern)
	}
	if text := err.Error(); strings.Contains(text, "\n") || !regexp.MustCompile(pattern).MatchString(text) {
		t.Errorf("got error %q, want one line with %q", text, pattern)
	}
}

func TestPortTaken(t *testing.T) {
	link := up(t, "loopback", nil)
	taken, err := net.Listen("tcp", "127.0.0.1:21111")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, workload := range []string{"tcp", "sockperf-tcp", "throughput", "http"} {
		_, err = start(t, link, workload, load.Params{Port: 21111})
		wantError(t, err, `tcp port 21111 is taken by load\.test \(pid \d+\).*(?i)address already in use`)
	}
}

func TestToolMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for name, want := range map[string]string{
		"sockperf-tcp": "sockperf is not installed: apt-get install sockperf", "icmp": "ping is not installed: apt-get install iputils-ping",
		"throughput": "iperf3 is not installed: apt-get install iperf3", "http": "wrk is not installed: apt-get install wrk",
	} {
		w, err := load.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		wantError(t, w.Check(t.Context()), want)
		_, err = w.Start(t.Context(), &arm.Link{}, load.Params{})
		wantError(t, err, want)
	}
}

// fakeTool puts a shell script before the real tool.
func fakeTool(t *testing.T, name, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

func TestServerNeverListens(t *testing.T) {
	load.SetServerPatience(t, 300*time.Millisecond)
	link := up(t, "loopback-netns", nil)
	fakeTool(t, "sockperf", "echo 'waiting for the stars' >&2; exec sleep 60")
	_, err := start(t, link, "sockperf-tcp", load.Params{})
	wantError(t, err, "the sockperf server at namespace does not listen on tcp port 11111 after 300ms: waiting for the stars")
}

func TestServerDiesAtOnce(t *testing.T) {
	link := up(t, "loopback-netns", nil)
	link.ListenAddr = vethAddr // not an address of this namespace
	for workload, want := range map[string]string{"tcp": "cannot assign requested address", "sockperf-udp": "Cannot assign requested address", "throughput": "Cannot assign requested address"} {
		_, err := start(t, link, workload, load.Params{})
		wantError(t, err, "ended before it listened .*"+want)
	}
}

func TestClientSaysNothingUseful(t *testing.T) {
	link := up(t, "loopback-netns", nil)
	session, err := start(t, link, "sockperf-tcp", load.Params{})
	if err != nil {
		t.Fatal(err)
	}
	fakeTool(t, "sockperf", "echo 'sockperf: ERROR: Can`t connect socket (errno=111 Connection refused)'")
	_, err = session.Round(t.Context(), short)
	wantError(t, err, "the sockperf client at namespace wrote no log: .*Connection refused")
}

func TestBadParams(t *testing.T) {
	link := up(t, "loopback-netns", nil)
	for _, c := range []struct {
		workload string
		params   load.Params
		want     string
	}{
		{"tcp", load.Params{Size: 13}, "messages of 13 bytes: 14 to 65507"},
		{"sockperf-udp", load.Params{Size: 65508}, "messages of 65508 bytes: 14 to 65507"},
		{"sockperf-tcp", load.Params{Rate: 100}, "sends each as soon as the last was answered"},
		{"throughput", load.Params{Size: 1}, "has no message size to choose"},
		{"tcp-rr", load.Params{Rate: -1}, "at -1 messages per second"},
	} {
		_, err := start(t, link, c.workload, c.params)
		wantError(t, err, c.want)
	}
	if _, err := load.Find("carrier-pigeon"); err == nil {
		t.Error("there is a workload named carrier-pigeon")
	}
}

// Nothing of a context that ends may stay, and the error says that it was that.
func TestInterrupted(t *testing.T) {
	link := up(t, "veth", nil)
	session, err := start(t, link, "tcp", load.Params{})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	ctx, cancel := contextWithTimeout(t, 200*time.Millisecond)
	defer cancel()
	_, err = session.Round(ctx, time.Minute)
	wantError(t, err, "context deadline exceeded")
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestServerDiesInMidRound(t *testing.T) {
	link := up(t, "veth", nil)
	session, err := start(t, link, "udp", load.Params{})
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(300*time.Millisecond, func() { killServer(t, "--role=server") })
	_, err = session.Round(t.Context(), 20*time.Second)
	wantError(t, err, "no reply from|server at server's namespace has ended|refused")
}

func TestContainerDiesInMidRound(t *testing.T) {
	containertest.StartDocker(t)
	link := up(t, "docker-bridge", nil)
	session, err := start(t, link, "tcp", load.Params{Port: 21111})
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(link.LostWhat, "docker container ")
	time.AfterFunc(300*time.Millisecond, func() {
		if output, err := exec.Command("docker", "kill", name).CombinedOutput(); err != nil {
			t.Errorf("killing %s: %v\n%s", name, err, output)
		}
	})
	_, err = session.Round(t.Context(), 30*time.Second)
	wantError(t, err, "docker container tare-bench-.* has gone away in mid-round")
	_, err = session.Round(t.Context(), short)
	wantError(t, err, "docker container tare-bench-.* has gone away")
}

func TestPublishedPortIsNotPinged(t *testing.T) {
	containertest.StartDocker(t)
	link := up(t, "docker-published", nil)
	_, err := start(t, link, "icmp", load.Params{})
	wantError(t, err, "nothing but TCP and UDP is published")
}

// The delay is real time: no reply can come before it is over, however fast the machine.
func TestDelay(t *testing.T) {
	const delay = 25 * time.Microsecond
	for _, name := range []string{"veth", "bridge", "bridge-nat"} {
		link := up(t, name, func(o *arm.Options) { o.Delay = delay })
		s := round(t, link, "udp", load.Params{}, short)
		if least := time.Duration(s.RTT.Min()); least < delay {
			t.Errorf("%s: a round trip of %s through a delay of %s", name, least, delay)
		}
	}
	for _, name := range []string{"loopback", "loopback-netns", "macvlan", "vxlan", "ovs-userspace"} {
		a, err := arm.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		_, err = a.Up(t.Context(), arm.Options{ClientCPU: -1, ServerCPU: -1, SoftirqCPU: -1, Delay: delay})
		wantError(t, err, "cannot add a delay")
	}
}

func TestRate(t *testing.T) {
	link := up(t, "veth", nil)
	s := round(t, link, "tcp-rr", load.Params{Rate: 20}, time.Second)
	// A message is due every 50 ms, and a busy machine only makes it fewer.
	if s.Messages == 0 || s.Messages > 20 {
		t.Errorf("%d messages in a second at 20 per second", s.Messages)
	}
}

// Softirqs are pinned where the devices are the arm's own, and refused elsewhere.
func TestSoftirqCPU(t *testing.T) {
	for _, name := range []string{"loopback-netns", "veth", "bridge", "ovs-userspace"} {
		link := up(t, name, func(o *arm.Options) { o.SoftirqCPU = 1 })
		round(t, link, "tcp", load.Params{}, short)
	}
	a, err := arm.Find("loopback")
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.Up(t.Context(), arm.Options{ClientCPU: -1, ServerCPU: -1, SoftirqCPU: 1})
	wantError(t, err, "cannot pin softirqs to CPU 1")
}
