package main

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"tare/container/containertest"
	"tare/subtract"
)

// eachRuntime runs a test with real Docker and with real podman, in a container of each, with a remote machine beyond
// the host's NIC. CAP_NET_RAW is Docker's default; podman has none, and busybox needs it.
func eachRuntime(t *testing.T, test func(t *testing.T, runtime *containertest.Runtime, id, remote string)) {
	remote := containertest.StartRemote(t)
	for _, start := range []func(testing.TB) *containertest.Runtime{containertest.StartDocker, containertest.StartPodman} {
		runtime := start(t)
		t.Run(runtime.Name, func(t *testing.T) {
			test(t, runtime, runtime.RunContainer(t, "web", "--cap-add=NET_RAW"), remote.Addr)
		})
	}
}

// in runs a tool in the container.
func in(t testing.TB, name string, argv ...string) (stdout, stderr string) {
	t.Helper()
	return tare(t, 0, append([]string{"run", "--container", name, "--"}, argv...)...)
}

func TestContainerText(t *testing.T) {
	eachRuntime(t, func(t *testing.T, runtime *containertest.Runtime, id, remote string) {
		for _, name := range []string{"web", id[:12], runtime.Name + ":web"} {
			stdout, stderr := in(t, name, "ping", "-c", "3", "-i", "0.05", remote)
			if strings.Count(stdout, "  corrected=") != 3 || !strings.Contains(stdout, "(3 of 3 replies corrected, as bare-metal)\n") {
				t.Errorf("%s:\n%s", name, stdout)
			}
			if stderr != "" {
				t.Errorf("%s: standard error %q", name, stderr)
			}
		}
		for _, test := range []struct {
			argv  []string
			count int
			want  string
		}{
			{[]string{"ping", "-q", "-c", "3", "-i", "0.05", remote}, 0, "(by the mean of 3 of 3 replies, none printed, as bare-metal)\n"},
			{[]string{"fping", "-e", remote}, 1, " is alive ("},
			{[]string{"busybox", "ping", "-c", "2", remote}, 2, "(2 of 2 replies corrected, as bare-metal)\n"},
			{[]string{"fping", "-c", "3", "-p", "50", remote}, 3, "(3 of 3 replies corrected, as bare-metal)\n"},
			{[]string{"traceroute", "-n", "-w", "2", remote}, 0, " ms  added ? ? ? (unfinished)\n 2  " + remote + "  "},
		} {
			stdout, stderr := in(t, "web", test.argv...)
			if strings.Count(stdout, "  corrected=") != test.count || !strings.Contains(stdout+stderr, test.want) {
				t.Errorf("%v:\n%s%s", test.argv, stdout, stderr)
			}
		}
	})
}

func TestContainerJSON(t *testing.T) {
	eachRuntime(t, func(t *testing.T, runtime *containertest.Runtime, _, remote string) {
		for _, as := range []string{"bare-metal", "wire"} {
			stdout, stderr := tare(t, 0, "run", "--container", "web", "--as", as, "-o", "json", "--", "ping", "-c", "10", "-i", "0.02", remote)
			if complaint := checkRun(stdout, 10, 10); complaint != "" {
				t.Errorf("as %s: %s%s", as, complaint, stderr)
				continue
			}
			summary, err := subtract.ReadSummary(strings.NewReader(stdout))
			if err != nil {
				t.Fatal(err)
			}
			if !(summary.CorrectedUs.P50 < summary.RTTUs.P50) || summary.AddedUs.Min <= 0 {
				t.Errorf("as %s: median %v us, corrected %v us", as, summary.RTTUs.P50, summary.CorrectedUs.P50)
			}
			if !slices.Equal(summary.NICs, []string{"nic0"}) {
				t.Errorf("NICs %v, want nic0", summary.NICs)
			}
		}
		// Without it ping uses a datagram socket, whose identifiers are the kernel's.
		argv := []string{"run", "--container", "dgram", "-o", "json", "--", "ping", "-c", "5", "-i", "0.02", remote}
		runtime.RunContainer(t, "dgram", "--cap-drop=ALL", "--user=65534", "--sysctl=net.ipv4.ping_group_range=0 65535")
		stdout, stderr := tare(t, 0, argv...)
		if complaint := checkRun(stdout, 5, 5); complaint != "" {
			t.Errorf("datagram socket: %s%s", complaint, stderr)
		}
	})
}

func TestContainerExitCodes(t *testing.T) {
	eachRuntime(t, func(t *testing.T, runtime *containertest.Runtime, _, remote string) {
		for _, test := range []struct {
			want int
			argv []string
		}{
			{1, []string{"ping", "-c", "1", "-W", "1", "10.80.0.99"}},
			{2, []string{"ping", "--no-such-flag"}},
			{42, []string{"sh", "-c", "exit 42"}},
			{137, []string{"sh", "-c", "kill -9 $$"}},
			{127, []string{"no-such-tool"}},
			{127, []string{"/no/such/ping", remote}},
			{126, []string{"/etc/not-run"}},
		} {
			p := newProcess(append([]string{"run", "--container", "web", "--"}, test.argv...)...)
			p.start(t)
			code := p.wait(t)
			// Docker 20.10 says 126 of a tool that is not there.
			if code != test.want && !(runtime.Name == "docker" && test.want == 127 && code == 126) {
				t.Errorf("%q: exit code %d, want %d\n%s%s", test.argv, code, test.want, &p.stdout, &p.stderr)
			}
			if text := p.stdout.String() + p.stderr.String(); test.want >= 126 && test.want <= 127 &&
				!strings.Contains(text, strings.TrimSuffix(test.argv[0], "/ping")) {
				t.Errorf("%q: nothing is said about it:\n%s", test.argv, text)
			}
		}
	})
}

// TestContainerSignals: a container's tool is no child of tare, and ends with it all the same.
func TestContainerSignals(t *testing.T) {
	eachRuntime(t, func(t *testing.T, _ *containertest.Runtime, _, remote string) {
		argv := []string{"run", "--container", "web", "--", "ping", "-i", "0.05", remote}
		p := startUntil(t, "corrected=", argv...)
		left := observe(t, p)
		p.signal(t, syscall.SIGINT, 0)
		if !strings.Contains(p.stdout.String(), " replies corrected, as bare-metal)\n") {
			t.Errorf("no statistics after SIGINT:\n%s", &p.stdout)
		}
		left.nothing()
		for signal, code := range map[syscall.Signal]int{syscall.SIGTERM: 143, syscall.SIGKILL: 137} {
			p = startUntil(t, "corrected=", argv...)
			left = observe(t, p)
			p.signal(t, signal, code)
			left.nothing()
		}
		t.Run("terminal", func(t *testing.T) { interruptOnTerminal(t, argv) })
	})
}

func TestContainerStops(t *testing.T) {
	eachRuntime(t, func(t *testing.T, runtime *containertest.Runtime, id, remote string) {
		p := startUntil(t, "corrected=", "run", "--container", "web", "--", "ping", "-i", "0.05", remote)
		watch := startUntil(t, "latency_ns", "watch", "--container", "web", "-o", "json")
		left := observe(t, p)
		runtime.Output(t, "kill", id)
		if code := p.wait(t); code != 137 {
			t.Errorf("exit code %d, want 137, as the tool was killed with its container", code)
		}
		note := "tare: " + runtime.Name + ":web has stopped; what follows is about what was measured until then\n"
		if text := p.stderr.String(); !strings.Contains(text, note) {
			t.Errorf("stderr %q, want %q", text, note)
		}
		if !strings.Contains(p.stdout.String(), "\nround trips: ") {
			t.Errorf("no summary of what was measured:\n%s", &p.stdout)
		}
		left.nothing()
		if code := watch.wait(t); code != 1 || !strings.Contains(watch.stderr.String(), "tare: "+runtime.Name+":web has stopped\n") {
			t.Errorf("watch: exit code %d, %s", code, &watch.stderr)
		}
		stderr := ""
		waitUntil(t, "the runtime calls it stopped", func() bool {
			again := newProcess("run", "--container", "web", "--", "ping", "-c", "1", remote)
			again.start(t)
			code := again.wait(t)
			stderr = again.stderr.String()
			return code == 125 && strings.Contains(stderr, "tare: container is not running: "+runtime.Name+":web is exited\n")
		})
	})
}

// TestContainersAtOnce: two runs in one container, and one in another, each see their own round trips only.
func TestContainersAtOnce(t *testing.T) {
	eachRuntime(t, func(t *testing.T, runtime *containertest.Runtime, _, remote string) {
		runtime.RunContainer(t, "db")
		var all []*process
		for _, name := range []string{"web", "web", "db"} {
			p := newProcess("run", "--container", name, "-o", "json", "--", "ping", "-c", "40", "-i", "0.02", remote)
			p.start(t)
			all = append(all, p)
		}
		for _, p := range all {
			if code := p.wait(t); code != 0 {
				t.Errorf("exit code %d: %s", code, &p.stderr)
			}
			for _, line := range scanJSON(t, p.stdout.String()) {
				if line["type"] == "rtt" && line["status"] != "matched" && line["status"] != "ambiguous" && !unseen(p.stdout.String()) {
					t.Errorf("a reply is %v", line["status"])
				}
			}
			if summary, err := subtract.ReadSummary(strings.NewReader(p.stdout.String())); err != nil || summary.Received != 40 {
				t.Errorf("%v, %+v", err, summary)
			}
		}
	})
}

func TestContainerWatchAndDoctor(t *testing.T) {
	eachRuntime(t, func(t *testing.T, runtime *containertest.Runtime, _, remote string) {
		ping := startUntil(t, "icmp_seq", "run", "--container", "web", "--", "ping", "-i", "0.05", remote)
		stdout, stderr := tare(t, 0, "watch", "--container", "web", "--count", "4", "-o", "json")
		for _, line := range scanJSON(t, stdout) {
			// Beside ping's there may be multicast of the bridge, which comes from no NIC.
			if line["container"] != "web" || line["proto"] == "icmp" && line["status"] != "matched" {
				t.Errorf("record %v", line)
			}
		}
		if n := strings.Count(stdout, "\n"); n != 4 || !strings.Contains(stderr, "records lost: 0\n") {
			t.Errorf("%d records, want 4; %s", n, stderr)
		}
		ping.signal(t, syscall.SIGINT, 0)

		stdout, _ = tare(t, 0, "doctor", "--container", "web")
		for _, want := range []string{"ok    " + runtime.Name, "has a network of its own\n", "ok    NIC                  nic0\n"} {
			if !strings.Contains(stdout, want) {
				t.Errorf("doctor says nothing of %q:\n%s", want, stdout)
			}
		}
		runtime.RunContainer(t, "onhost", "--network=host")
		stdout, _ = tare(t, 0, "doctor", "--container", "onhost")
		if !strings.Contains(stdout, "shares the host's network: nothing is added\n") {
			t.Errorf("doctor about a container on the host's network:\n%s", stdout)
		}
		_, stderr = tare(t, 125, "run", "--container", "onhost", "--", "ping", "-c", "1", remote)
		if !strings.Contains(stderr, "it shares the host's network: nothing is added, so there is nothing to subtract; --as wire") {
			t.Errorf("run on the host's network: %s", stderr)
		}
	})
}
