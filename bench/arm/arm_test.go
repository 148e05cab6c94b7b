package arm_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tare/bench/arm"
	"tare/container/containertest"
	"tare/lab"
)

// holderVariable makes this binary a process that holds an arm up until it is killed.
const holderVariable = "TARE_ARM_TEST_HOLDER"

func TestMain(m *testing.M) {
	if name := os.Getenv(holderVariable); name != "" {
		hold(name)
	}
	os.Exit(containertest.Main(m))
}

func hold(name string) {
	link, err := up(context.Background(), name)
	if err == nil {
		// A tool that would outlive its parent by far.
		tool := link.Server.Command(context.Background(), "sleep", "1000.5")
		if err = tool.Start(); err == nil {
			var pid int
			for range 200 {
				if pid, err = link.Server.PID(context.Background(), tool); err == nil {
					break
				}
				time.Sleep(50 * time.Millisecond)
			}
			fmt.Printf("up %d %s\n", pid, link.Dir)
			time.Sleep(time.Hour)
		}
	}
	fmt.Println("failed:", err)
	os.Exit(1)
}

func up(ctx context.Context, name string) (*arm.Link, error) {
	a, err := arm.Find(name)
	if err != nil {
		return nil, err
	}
	return a.Up(ctx, arm.Options{ClientCPU: 0, ServerCPU: 0, SoftirqCPU: arm.Unpinned})
}

func mustUp(t *testing.T, name string) *arm.Link {
	t.Helper()
	link, err := up(t.Context(), name)
	if err != nil {
		t.Fatalf("%s: %s", name, err)
	}
	t.Cleanup(func() {
		// Twice: whoever cleans up need not know whether somebody did.
		for range 2 {
			if err := link.Close(); err != nil {
				t.Errorf("closing %s: %s", name, err)
			}
		}
	})
	return link
}

func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range arm.All() {
		if a.Name == "" || a.Summary == "" || a.Check == nil || a.Up == nil || seen[a.Name] {
			t.Errorf("%+v: incomplete, or twice", a)
		}
		seen[a.Name] = true
	}
	if arm.All()[0].Name != "loopback" {
		t.Errorf("the first arm is %s: the baseline comes first", arm.All()[0].Name)
	}
	if _, err := arm.Find("token-ring"); err == nil || !strings.Contains(err.Error(), "docker-bridge") {
		t.Errorf("finding an arm that does not exist: %v", err)
	}
}

// An arm that cannot be made says so in one line.
func TestCheckWithoutTools(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for name, want := range map[string]string{
		"docker-bridge": "docker is not installed", "podman": "podman is not installed",
		"ovs-userspace": "ovsdb-tool is not installed: apt-get install openvswitch-switch",
	} {
		a, err := arm.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Check(t.Context()); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

func TestCheckWithoutDaemon(t *testing.T) {
	t.Setenv("DOCKER_HOST", "unix:///nonexistent.sock")
	a, err := arm.Find("docker-bridge")
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "docker does not answer") || strings.Contains(err.Error(), "\n") {
		t.Errorf("without a daemon: %v", err)
	}
}

// A/A needs an arm twice at the same time, and each must reach its own server's place.
func TestTwiceAtOnce(t *testing.T) {
	for _, name := range []string{"loopback-netns", "veth", "bridge", "macvlan", "vxlan", "ovs-userspace"} {
		t.Run(name, func(t *testing.T) {
			one, two := mustUp(t, name), mustUp(t, name)
			if one.Dir == two.Dir || one.Server.NetNS() == two.Server.NetNS() {
				t.Errorf("both have %s and %s", one.Dir, one.Server.NetNS())
			}
			for _, link := range []*arm.Link{one, two} {
				ping(t, link)
			}
		})
	}
}

func ping(t *testing.T, link *arm.Link) {
	t.Helper()
	if output, err := link.Client.Command(t.Context(), "ping", "-c1", "-W5", link.ServerAddr.String()).CombinedOutput(); err != nil {
		t.Errorf("from %s to %s: %v\n%s", link.Client, link.Server, err, output)
	}
}

func TestPinned(t *testing.T) {
	output, err := mustUp(t, "veth").Client.Command(t.Context(), "grep", "Cpus_allowed_list", "/proc/self/status").Output()
	if err != nil || strings.Join(strings.Fields(string(output)), " ") != "Cpus_allowed_list: 0" {
		t.Errorf("%q, %v", output, err)
	}
}

// Tools run in a container as its runtime would have them run, and are the host's own files.
func TestContainerIsReal(t *testing.T) {
	containertest.StartDocker(t)
	link := mustUp(t, "docker-bridge")
	output, err := link.Server.Command(t.Context(), "sh", "-c", "grep Seccomp: /proc/self/status; stat -c %i /usr/bin/sha256sum; cat /proc/1/comm; grep Cpus_allowed_list /proc/self/status").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	var info syscall.Stat_t
	if err := syscall.Stat("/usr/bin/sha256sum", &info); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(strings.Fields(string(output)), " "), fmt.Sprintf("Seccomp: 2 %d cat Cpus_allowed_list: 0", info.Ino); got != want {
		t.Errorf("in the container: %q, want %q", got, want)
	}
}

// startHolder starts a process that holds an arm, and returns it, a tool's pid and the arm's directory.
func startHolder(t *testing.T, name string) (holder *exec.Cmd, tool int, dir string) {
	t.Helper()
	holder = exec.Command("/proc/self/exe")
	holder.Env = append(os.Environ(), holderVariable+"="+name)
	holder.Stderr = os.Stderr
	output, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = holder.Process.Kill(); _ = holder.Wait() })
	line, _ := bufio.NewReader(output).ReadString('\n')
	if _, err := fmt.Sscanf(line, "up %d %s", &tool, &dir); err != nil {
		t.Fatalf("%s: %s", name, line)
	}
	return holder, tool, dir
}

func gone(t *testing.T, what string, there func() bool) {
	t.Helper()
	for range 400 {
		if !there() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("%s is still there", what)
}

// After SIGKILL tools and containers end by themselves; the rest goes when the next link of the kind is made.
func TestKilled(t *testing.T) {
	containertest.StartDocker(t)
	containertest.StartPodman(t)
	for name, runtime := range map[string]string{"bridge": "", "ovs-userspace": "", "docker-macvlan": "docker", "podman": "podman"} {
		t.Run(name, func(t *testing.T) {
			holder, tool, dir := startHolder(t, name)
			if _, err := os.Stat(fmt.Sprintf("/proc/%d", tool)); err != nil {
				t.Fatalf("the tool does not run: %v", err)
			}
			if err := holder.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = holder.Wait()
			gone(t, "the tool", func() bool { _, err := os.Stat(fmt.Sprintf("/proc/%d", tool)); return err == nil })
			if runtime != "" {
				gone(t, "the container", func() bool {
					output, err := exec.Command(runtime, "ps", "--quiet", "--filter", "label=tare.bench.owner").CombinedOutput()
					return err != nil || len(output) > 0
				})
			}
			mustUp(t, name)
			if _, err := os.Stat(dir); err == nil {
				t.Errorf("%s is still there", dir)
			}
			mark := fmt.Sprintf("bench-%d-", holder.Process.Pid)
			labs, err := lab.List()
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range labs {
				if strings.HasPrefix(l, mark) {
					t.Errorf("lab %s is still there", l)
				}
			}
			if runtime == "docker" {
				output, err := exec.Command("docker", "network", "ls", "--format", "{{.Name}}").Output()
				if err != nil || strings.Contains(string(output), mark) {
					t.Errorf("networks: %s, %v", output, err)
				}
			}
			if links, _ := filepath.Glob(fmt.Sprintf("/sys/class/net/tm%d-*", holder.Process.Pid)); len(links) > 0 {
				gone(t, "the macvlan's parent", func() bool { _, err := os.Stat(links[0]); return err == nil })
			}
		})
	}
}

// What is another's, or nobody's, is not for sweeping.
func TestSweepLeavesOthersAlone(t *testing.T) {
	other := mustUp(t, "bridge")
	stranger, err := lab.Up(t.Context(), lab.Options{Name: "bench-not-a-pid"})
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Down()
	mustUp(t, "bridge")
	ping(t, other)
	if _, err := lab.Open(stranger.Name()); err != nil {
		t.Errorf("a lab of another kind was removed: %v", err)
	}
}
