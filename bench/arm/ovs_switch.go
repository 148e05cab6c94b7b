package arm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// vswitch is a private Open vSwitch: a database and a switch with all their files in one directory, in a namespace of
// their own. The host's own, if there is one, is neither asked nor disturbed.
type vswitch struct {
	dir     string
	ns      *namespace
	daemons []*exec.Cmd
	ended   []chan struct{}
	lost    chan struct{} // closed when a daemon has ended
	once    sync.Once
	version string
}

const ovsPatience = 20 * time.Second

// startVSwitch starts the daemons and makes a bridge of the namespace's ports.
func startVSwitch(ctx context.Context, ns *namespace, dir string) (*vswitch, error) {
	v := &vswitch{dir: dir, ns: ns, lost: make(chan struct{})}
	ctx, cancel := context.WithTimeoutCause(ctx, ovsPatience, fmt.Errorf("no answer in %s", ovsPatience))
	defer cancel()
	if err := v.start(ctx); err != nil {
		v.stop()
		return nil, fmt.Errorf("starting a private Open vSwitch: %w", err)
	}
	return v, nil
}

func (v *vswitch) start(ctx context.Context) error {
	database, socket := filepath.Join(v.dir, "conf.db"), filepath.Join(v.dir, "db.sock")
	if _, err := v.run(ctx, "ovsdb-tool", "create", database, ovsSchema); err != nil {
		return err
	}
	if err := v.daemon("ovsdb-server", database, "--remote=punix:"+socket, "--unixctl="+filepath.Join(v.dir, "ovsdb.ctl")); err != nil {
		return err
	}
	if err := v.waitFor(ctx, socket); err != nil {
		return err
	}
	vsctl := func(args ...string) error {
		_, err := v.run(ctx, "ovs-vsctl", append([]string{"--db=unix:" + socket, "--timeout=15"}, args...)...)
		return err
	}
	if err := vsctl("--no-wait", "init"); err != nil {
		return err
	}
	if err := v.daemon("ovs-vswitchd", "unix:"+socket, "--disable-system", "--unixctl="+filepath.Join(v.dir, "vswitchd.ctl")); err != nil {
		return err
	}
	// Without --no-wait it returns when the switch has done it.
	if err := vsctl("add-br", "ovs0", "--", "set", "bridge", "ovs0", "datapath_type=netdev", "--",
		"add-port", "ovs0", ovsPort(0), "--", "add-port", "ovs0", ovsPort(1)); err != nil {
		return err
	}
	version, err := v.run(ctx, "ovs-vswitchd", "--version")
	v.version, _, _ = strings.Cut(version, "\n")
	return err
}

// command prepares a program of Open vSwitch in the switch's namespace, with all its default paths in the directory.
func (v *vswitch) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "nsenter", append([]string{"--net=" + v.ns.path(), "--", name}, args...)...)
	cmd.Env = append(os.Environ(), "OVS_RUNDIR="+v.dir, "OVS_LOGDIR="+v.dir, "OVS_DBDIR="+v.dir, "OVS_SYSCONFDIR="+v.dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	return cmd
}

func (v *vswitch) run(ctx context.Context, name string, args ...string) (string, error) {
	output, err := v.command(ctx, name, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s%s", name, err, strings.Join(strings.Fields(string(output)), " "), v.lastWords())
	}
	return strings.TrimSpace(string(output)), nil
}

// daemon starts a daemon in the foreground, so that it is a child and dies with this process.
func (v *vswitch) daemon(name string, args ...string) error {
	log, err := os.Create(filepath.Join(v.dir, name+".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := v.command(context.Background(), name, append(args, "--no-chdir", "-vconsole:warn", "-vsyslog:off")...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := Start(cmd); err != nil {
		return fmt.Errorf("starting %s: %w", name, err)
	}
	ended := make(chan struct{})
	v.daemons, v.ended = append(v.daemons, cmd), append(v.ended, ended)
	go func() {
		_ = cmd.Wait()
		close(ended)
		v.once.Do(func() { close(v.lost) })
	}()
	return nil
}

func (v *vswitch) waitFor(ctx context.Context, socket string) error {
	for {
		if _, err := os.Stat(socket); err == nil {
			return nil
		}
		select {
		case <-v.lost:
			return errors.New("ovsdb-server ended" + v.lastWords())
		case <-ctx.Done():
			return fmt.Errorf("waiting for ovsdb-server: %w%s", context.Cause(ctx), v.lastWords())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// lastWords is what the daemons said, for an error.
func (v *vswitch) lastWords() string {
	words := ""
	for _, name := range []string{"ovsdb-server", "ovs-vswitchd"} {
		text, _ := os.ReadFile(filepath.Join(v.dir, name+".log"))
		if fields := strings.Fields(string(text[max(0, len(text)-400):])); len(fields) > 0 {
			words += "; " + name + " says: " + strings.Join(fields, " ")
		}
	}
	return words
}

// stop ends the daemons, the switch before its database. SIGTERM first: a killed switch leaves its devices to the kernel.
func (v *vswitch) stop() {
	for i := len(v.daemons) - 1; i >= 0; i-- {
		_ = v.daemons[i].Process.Signal(syscall.SIGTERM)
		select {
		case <-v.ended[i]:
		case <-time.After(3 * time.Second):
			_ = v.daemons[i].Process.Kill()
			<-v.ended[i]
		}
	}
}
