package dockctl

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// daemonUser is whom dockdaemon becomes after its start: a user that nobody else is (systemd's range for such).
const daemonUser = 61990

// startPatience bounds the start; DPDK's own takes 0.1 to 1 s, physical NICs some seconds.
const startPatience = 60 * time.Second

// UpOptions say how dockdaemon runs.
type UpOptions struct {
	NIC       string // none, af_xdp:IFACE, af_packet:IFACE, tap:NAME, pci:ADDRESS; behind it ",mtu=N"
	Masters   int
	CPUs      string // of the masters, with commas; "": anywhere
	Wait      string // adaptive, busy, sleep
	MemoryMiB int
	User      int    // -1: one of its own; 0: root without capabilities
	Daemon    string // path of the program; "": look for it
}

// FindDaemon looks for the dockdaemon program: where TARE_DOCKDAEMON says, beside tare, where a checkout builds it and an
// installation puts it, and in PATH. Never in the current directory: root would run whatever lies there.
func FindDaemon() (string, error) {
	places := []string{os.Getenv("TARE_DOCKDAEMON")}
	if self, err := os.Executable(); err == nil {
		dir := filepath.Dir(self)
		places = append(places, filepath.Join(dir, "dockdaemon"))
		if parent, last := filepath.Split(dir); last == "bin" {
			places = append(places,
				filepath.Join(parent, "docknet", "build", "daemon", "dockdaemon"),
				filepath.Join(parent, "build", "daemon", "dockdaemon"),
				filepath.Join(parent, "libexec", "tare", "dockdaemon"))
		}
	}
	for _, path := range places {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	if path, err := exec.LookPath("dockdaemon"); err == nil {
		return path, nil
	}
	return "", fmt.Errorf("%w, or not found: it is not beside tare, not in the build directory of tare's checkout, and not in PATH", ErrNoDaemon)
}

// Up starts the net's dockdaemon, which offers again the pipes that a killed one had. It returns when the daemon answers.
func (n *Net) Up(ctx context.Context, options UpOptions) (Info, error) {
	if os.Geteuid() != 0 {
		return Info{}, fmt.Errorf("starting net %q: %w", n.name, os.ErrPermission)
	}
	program := options.Daemon
	if program == "" {
		var err error
		if program, err = FindDaemon(); err != nil {
			return Info{}, err
		}
	}
	if client, err := n.Dial(); err == nil {
		client.Close()
		return Info{}, fmt.Errorf("net %q %w", n.name, ErrUp)
	}
	if err := checkMemory(options.MemoryMiB); err != nil {
		return Info{}, err
	}
	// The daemon, no longer root, has to pass through those above its own.
	err := os.MkdirAll(stateDir, 0o755)
	if err == nil {
		err = os.Mkdir(n.dir, 0o700)
	}
	if err != nil && !errors.Is(err, os.ErrExist) {
		return Info{}, fmt.Errorf("making the directory of net %q: %w", n.name, err)
	}
	if err := n.prepareNIC(options.NIC); err != nil {
		n.removeIfNew()
		return Info{}, err
	}
	if err := n.start(ctx, program, options); err != nil {
		n.releaseNIC()
		n.removeIfNew()
		return Info{}, err
	}
	client, err := n.Dial()
	if err != nil {
		return Info{}, err
	}
	defer client.Close()
	return client.Info()
}

// checkMemory refuses what the machine does not have, neither in hugepages nor in others: DPDK would touch each page of it,
// and take the machine down with it.
func checkMemory(wantMiB int) error {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return fmt.Errorf("looking how much memory there is: %w", err)
	}
	have := map[string]int{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		have[name], _ = strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(value), " kB"))
	}
	availableMiB := (have["MemAvailable"] + have["HugePages_Free"]*have["Hugepagesize"]) / 1024
	if wantMiB > availableMiB {
		return fmt.Errorf("no memory for --memory %d: %d MiB are available", wantMiB, availableMiB)
	}
	return nil
}

func (n *Net) arguments(o UpOptions) []string {
	user := o.User
	if user < 0 {
		user = daemonUser
	}
	args := []string{"--dir", n.dir, "--nic", o.NIC, "--masters", strconv.Itoa(o.Masters), "--wait", o.Wait,
		"--memory", strconv.Itoa(o.MemoryMiB), "--user", strconv.Itoa(user), "--ready-fd", "3"}
	if o.CPUs != "" {
		args = append(args, "--cpus", o.CPUs)
	}
	return args
}

// start runs the program in the background and waits for the one line that it writes when it is ready, or why not.
func (n *Net) start(ctx context.Context, program string, options UpOptions) error {
	log, err := os.OpenFile(n.LogPath(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log of net %q: %w", n.name, err)
	}
	defer log.Close()
	ready, answer, err := os.Pipe()
	if err != nil {
		return err
	}
	defer ready.Close()
	cmd := exec.Command(program, n.arguments(options)...)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = log, log, []*os.File{answer}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // not the terminal's: Ctrl-C later is for others
	err = cmd.Start()
	answer.Close()
	if err != nil {
		return fmt.Errorf("running %s: %w", program, err)
	}
	line, err := readLine(ctx, ready)
	if line == "ready" {
		return cmd.Process.Release()
	}
	if line == "" {
		_ = cmd.Process.Kill() // it does not answer, or has died
	}
	waitErr := cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("starting net %q: %w", n.name, ctx.Err())
	case line != "":
		return fmt.Errorf("starting dockdaemon: %s", line)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("starting dockdaemon: no answer within %v: %s", startPatience, n.lastLogLine())
	}
	return fmt.Errorf("starting dockdaemon: %v: %s", waitErr, n.lastLogLine())
}

// readLine waits for one line; "" comes with the reason.
func readLine(ctx context.Context, from *os.File) (string, error) {
	if err := from.SetReadDeadline(time.Now().Add(startPatience)); err != nil {
		return "", err
	}
	stop := context.AfterFunc(ctx, func() { _ = from.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	line, err := bufio.NewReader(from).ReadString('\n')
	return strings.TrimSuffix(line, "\n"), err
}

// lastLogLine is what the daemon said last.
func (n *Net) lastLogLine() string {
	text, _ := os.ReadFile(n.LogPath())
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return lines[len(lines)-1]
}

// removeIfNew removes the directory of a net that has never been up: one that has has a state file.
func (n *Net) removeIfNew() {
	if _, err := os.Stat(filepath.Join(n.dir, "state.json")); errors.Is(err, os.ErrNotExist) && !n.running() {
		os.RemoveAll(n.dir)
		os.Remove(stateDir)
	}
}
