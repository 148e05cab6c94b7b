package containertest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Runtime is a container runtime on the private host, with Image in its store. It serves all tests of the
// process and ends with it.
type Runtime struct {
	Name  string // the client's name: docker or podman
	group string // the control group above its containers
}

// StartDocker starts a Docker daemon on the private host; a later call returns the same.
func StartDocker(t testing.TB) *Runtime {
	t.Helper()
	host := requireHost(t)
	host.starting.Lock()
	defer host.starting.Unlock()
	if host.docker == nil {
		docker := &Runtime{Name: "docker", group: "/" + filepath.Base(host.dir)}
		if err := host.startDockerd(docker.group); err != nil {
			t.Fatalf("containertest: starting dockerd: %s", err)
		}
		if err := docker.importImage(host.dir); err != nil {
			t.Fatalf("containertest: %s", err)
		}
		host.docker = docker
	}
	return host.docker
}

// startDockerd starts the daemon and waits until it answers. Its storage driver is its own choice: overlay2, or
// vfs where the file system allows nothing better.
func (h *host) startDockerd(group string) error {
	logPath := filepath.Join(h.dir, "dockerd.log")
	log, err := os.Create(logPath)
	if err != nil {
		return err
	}
	defer log.Close()
	daemon := exec.Command("dockerd",
		"--host=unix:///run/docker.sock",
		"--data-root="+filepath.Join(h.dir, "docker"),
		"--exec-root=/run/docker",
		"--pidfile=/run/docker.pid",
		"--config-file="+filepath.Join(h.dir, "daemon.json"), // the machine's own is not for this daemon
		"--cgroup-parent="+group,
	)
	if err := os.WriteFile(filepath.Join(h.dir, "daemon.json"), []byte("{}\n"), 0o644); err != nil {
		return err
	}
	daemon.Stdout, daemon.Stderr = log, log
	daemon.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // a terminal's ^C is for the tests
	if err := daemon.Start(); err != nil {
		return fmt.Errorf("%w (./setup installs it)", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- daemon.Wait() }()
	for range 600 {
		if exec.Command("docker", "version").Run() == nil {
			return nil
		}
		select {
		case err := <-ended:
			return fmt.Errorf("it ended (%v)\n%s", err, tail(logPath))
		case <-time.After(50 * time.Millisecond):
		}
	}
	return fmt.Errorf("it does not answer\n%s", tail(logPath))
}

func tail(path string) string {
	text, _ := os.ReadFile(path)
	return string(text[max(0, len(text)-4000):])
}

// StartPodman prepares podman on the private host; a later call returns the same.
func StartPodman(t testing.TB) *Runtime {
	t.Helper()
	host := requireHost(t)
	host.starting.Lock()
	defer host.starting.Unlock()
	if host.podman == nil {
		podman := &Runtime{Name: "podman", group: "/" + filepath.Base(host.dir)}
		if err := host.configurePodman(); err != nil {
			t.Fatalf("containertest: configuring podman: %s", err)
		}
		if err := podman.importImage(host.dir); err != nil {
			t.Fatalf("containertest: %s", err)
		}
		host.podman = podman
	}
	return host.podman
}

// podmanConfiguration makes podman work without systemd, which the private host does not show. Its default
// limits are higher than its own, and only CAP_SYS_RESOURCE, which root may lack, could raise those.
const podmanConfiguration = `[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
[network]
network_backend = "netavark"
network_config_dir = "%[1]s/podman-networks"
[containers]
default_ulimits = ["nofile=%[2]d:%[2]d", "nproc=%[3]d:%[3]d"]
`

// podmanProcesses is the process limit that podman 4.3 gives itself (seen with strace).
const podmanProcesses = 32 << 10

const podmanStorage = `[storage]
driver = "vfs"
graphroot = "%[1]s/podman"
runroot = "/run/containers/storage"
`

// configurePodman covers /etc/containers with a private copy, so that the plain command, and so whatever tare
// runs, finds the private storage without an environment variable.
func (h *host) configurePodman() error {
	const system = "/etc/containers"
	private := filepath.Join(h.dir, "etc-containers")
	if err := os.CopyFS(private, os.DirFS(system)); err != nil {
		return fmt.Errorf("copying %s: %w (./setup installs podman)", system, err)
	}
	var files, processes unix.Rlimit
	if err := errors.Join(unix.Getrlimit(unix.RLIMIT_NOFILE, &files), unix.Getrlimit(unix.RLIMIT_NPROC, &processes)); err != nil {
		return err
	}
	configuration := map[string]string{
		"containers.conf": fmt.Sprintf(podmanConfiguration, h.dir, min(files.Max, 1<<20), min(processes.Max, podmanProcesses)),
		"storage.conf":    fmt.Sprintf(podmanStorage, h.dir),
	}
	for name, content := range configuration {
		if err := os.WriteFile(filepath.Join(private, name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	if err := syscall.Mount(private, system, "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("covering %s: %w", system, err)
	}
	return nil
}

// importImage makes Image.
func (r *Runtime) importImage(dir string) error {
	path := filepath.Join(dir, "image.tar")
	if !exists(path) {
		file, err := os.Create(path)
		if err != nil {
			return err
		}
		defer file.Close()
		if err := writeImage(file); err != nil {
			return fmt.Errorf("writing the test image: %w", err)
		}
	}
	if output, err := exec.Command(r.Name, "import", "--change", "ENV PATH=/bin", path, Image).CombinedOutput(); err != nil {
		return fmt.Errorf("%s import: %w\n%s", r.Name, err, output)
	}
	return nil
}

// RunContainer starts a container that does nothing, until the test is over. Options are those of 'docker run',
// such as --network=host. It returns the container's ID.
func (r *Runtime) RunContainer(t testing.TB, name string, options ...string) string {
	t.Helper()
	arguments := []string{"run", "--detach", "--name", name, "--cgroup-parent", r.group, "--stop-signal", "KILL"}
	arguments = append(arguments, options...)
	arguments = append(arguments, Image, "/bin/sleep", "86400")
	t.Cleanup(func() {
		if output, err := exec.Command(r.Name, "rm", "--force", "--volumes", name).CombinedOutput(); err != nil {
			t.Errorf("removing %s's container %s: %s\n%s", r.Name, name, err, output)
		}
	})
	return r.Output(t, arguments...)
}

// Output runs the runtime's client and returns what it prints, without the last line break.
func (r *Runtime) Output(t testing.TB, arguments ...string) string {
	t.Helper()
	var complaint strings.Builder
	command := exec.Command(r.Name, arguments...)
	command.Stderr = &complaint
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%s %s: %s\n%s", r.Name, strings.Join(arguments, " "), err, &complaint)
	}
	return strings.TrimSpace(string(output))
}
