package arm

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// container is a running container whose only process, until tools are started in it, reads a pipe that this process
// holds. When the pipe closes, because tare closes it or dies in whatever way, that process ends, and the container with
// all its tools is removed.
type container struct {
	engine engine
	name   string
	cpu    int

	run   *exec.Cmd
	input io.Closer
	said  bytes.Buffer
	ended chan struct{} // closed when the container has

	pid  int // of its first process, as this host sees it
	addr netip.Addr
}

const (
	startPatience = 30 * time.Second // from 'run' to a running container
	endPatience   = 10 * time.Second // from closing the pipe to a removed container
)

// start starts a container with options of 'docker run', and dir mounted read-write under its own path.
func (r engine) start(ctx context.Context, cpu int, dir string, options ...string) (*container, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding tare's own program: %w", err)
	}
	c := &container{engine: r, name: "tare-" + newName(), cpu: cpu, ended: make(chan struct{})}
	args := []string{"run", "--rm", "--interactive", "--name", c.name, "--label", ownerLabel + "=" + ownerTag(), "--pull=never"}
	args = append(args, hostMounts(self)...)
	args = append(args, "--mount", "type=bind,source="+dir+",target="+dir)
	args = append(args, options...)
	args = append(args, imageName, "/usr/bin/cat")
	c.run = exec.Command(string(r), args...)
	c.run.Stderr = &c.said
	c.run.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a terminal's ^C is not for it
	input, err := c.run.StdinPipe()
	if err != nil {
		return nil, err
	}
	c.input = input
	if err := c.run.Start(); err != nil {
		return nil, fmt.Errorf("starting a container: %w", err)
	}
	go func() {
		_ = c.run.Wait()
		close(c.ended)
	}()
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	if err := c.waitRunning(ctx); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// inspected is what of a container is asked for: whether it runs, its first process, its addresses.
const inspected = `{{.State.Running}} {{.State.Pid}} {{range .NetworkSettings.Networks}}{{.IPAddress}} {{end}}`

func (c *container) waitRunning(ctx context.Context) error {
	for {
		text, err := c.engine.output(ctx, "inspect", "--format", inspected, c.name)
		if fields := strings.Fields(text); err == nil && len(fields) >= 2 && fields[0] == "true" && fields[1] != "0" {
			if _, err := fmt.Sscan(fields[1], &c.pid); err != nil {
				return fmt.Errorf("%s names no process of container %s: %q", c.engine, c.name, text)
			}
			if len(fields) > 2 {
				c.addr, _ = netip.ParseAddr(fields[2])
			}
			return nil
		}
		select {
		case <-c.ended:
			return fmt.Errorf("%s run: %s", c.engine, strings.Join(strings.Fields(c.said.String()), " "))
		case <-ctx.Done():
			return fmt.Errorf("container %s does not run after %s", c.name, startPatience)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// close removes the container.
func (c *container) close() error {
	_ = c.input.Close()
	select {
	case <-c.ended:
		return nil
	case <-time.After(endPatience):
	}
	_, err := c.engine.output(context.Background(), "rm", "--force", c.name)
	_ = c.run.Process.Kill()
	<-c.ended
	return err
}

// toolVariable marks a tool: its process is no child of the client that asked for it.
const toolVariable = "TARE_BENCH_TOOL"

// Command implements Place. The tool gets what its runtime gives to every process of a container, seccomp filter and
// control group included.
func (c *container) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	argv := []string{"exec", "--env", toolVariable + "=" + rand.Text(), "--env", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", c.name}
	cmd := exec.CommandContext(ctx, string(c.engine), append(argv, pinned(c.cpu, name, args)...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	return cmd
}

// PID implements Place.
func (c *container) PID(_ context.Context, cmd *exec.Cmd) (int, error) {
	const markAt = 3 // docker exec --env MARK
	if len(cmd.Args) <= markAt {
		return 0, fmt.Errorf("%q was not made by Command", cmd.Args)
	}
	mark := []byte(cmd.Args[markAt] + "\x00")
	own := c.mountNamespace()
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		environment, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(environment, mark) {
			continue
		}
		pid := 0
		if _, err := fmt.Sscanf(file, "/proc/%d/environ", &pid); err != nil {
			continue
		}
		// The runtime's own helper on the way into the container may carry the environment, too.
		if ns, err := os.Readlink(filepath.Join(filepath.Dir(file), "ns/mnt")); err == nil && ns == own {
			return pid, nil
		}
	}
	return 0, os.ErrProcessDone
}

// mountNamespace is the container's mount namespace, which nobody else is in.
func (c *container) mountNamespace() string {
	ns, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", c.pid))
	return ns
}

func (c *container) NetNS() string  { return fmt.Sprintf("/proc/%d/ns/net", c.pid) }
func (c *container) CPU() int       { return c.cpu }
func (c *container) String() string { return fmt.Sprintf("%s container %s", c.engine, c.name) }

// prepare does what all arms of a runtime do first, and makes their directory.
func (r engine) prepare(ctx context.Context, o Options) (dir string, err error) {
	if err := errors.Join(cannotPinSoftirq(o), cannotDelay(o)); err != nil {
		return "", err
	}
	if err := r.sweep(ctx); err != nil {
		return "", err
	}
	if err := r.importImage(ctx); err != nil {
		return "", err
	}
	return scratch()
}

// serverInContainer is the link of arms with the client on the host and the server in a container.
func (r engine) serverInContainer(ctx context.Context, o Options, path string, options ...string) (*Link, error) {
	dir, err := r.prepare(ctx, o)
	if err != nil {
		return nil, err
	}
	c, err := r.start(ctx, o.ServerCPU, dir, options...)
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return &Link{
		Client: netnsPlace{name: "host", cpu: o.ClientCPU}, Server: c,
		ListenAddr: c.addr, ServerAddr: c.addr, ServerPort: samePort, Dir: dir,
		Describe: map[string]string{"path": path, "runtime": r.version(ctx), "softirq": softirqText(o)},
		Lost:     c.ended, LostWhat: c.String(),
		Close: sync.OnceValue(func() error {
			return errors.Join(c.close(), os.RemoveAll(dir))
		}),
	}, nil
}
