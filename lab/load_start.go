package lab

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// startAll starts every process of the background.
func (ld *Load) startAll(ctx context.Context, b Background) error {
	l := ld.lab
	cpus, err := allowedCPUs()
	if err != nil {
		return err
	}
	for i := range b.Floods {
		if err := ctx.Err(); err != nil {
			return err
		}
		host := Container(senderOf(i, l.Containers()))
		if err := ld.flood(host, l.RemoteAddr4(), cpus[i%len(cpus)]); err != nil {
			return err
		}
	}
	// The pair that speaks within the host: two containers beyond the first, where there are as many.
	from, to := 2, 1
	if l.Containers() >= 3 {
		to = 3
	}
	if b.LocalICMP {
		if err := ld.flood(Container(from), l.ContainerAddr4(to), anyCPU); err != nil {
			return err
		}
	}
	sender := Container(senderOf(0, l.Containers()))
	for _, stream := range []struct {
		wanted       bool
		network      string
		source, sink string
		sinkAddress  netip.Addr
	}{
		{b.TCP, "tcp", sender, Remote, l.RemoteAddr4()},
		{b.UDP, "udp", sender, Remote, l.RemoteAddr4()},
		{b.UDPMbits > 0, pacedUDP(b.UDPMbits), sender, Remote, l.RemoteAddr4()},
		{b.LocalTCP, "tcp", Container(from), Container(to), l.ContainerAddr4(to)},
		{b.LocalUDP, "udp", Container(from), Container(to), l.ContainerAddr4(to)},
	} {
		if !stream.wanted {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := ld.stream(stream.network, stream.source, stream.sink, stream.sinkAddress); err != nil {
			return err
		}
	}
	return nil
}

// senderOf spreads senders over the containers beyond the first.
func senderOf(i, containers int) int {
	if containers == 1 {
		return 1
	}
	return 2 + i%(containers-1)
}

// ownBound is the time after which a process ends by itself. It is a little longer than the load's, which ends all of
// them together.
func (ld *Load) ownBound() time.Duration { return ld.bound.Truncate(time.Second) + 2*time.Second }

// flood starts one flood ping.
func (ld *Load) flood(host string, to netip.Addr, cpu int) error {
	seconds := int(ld.ownBound() / time.Second)
	cmd := exec.Command("ping", "-f", "-q", "-n", "-w", strconv.Itoa(seconds), to.String())
	if cmd.Err != nil {
		return fmt.Errorf("looking for ping (package iputils-ping): %w", cmd.Err)
	}
	return ld.start(host, cmd, cpu)
}

// stream starts a receiver, then a sender to the port that it got.
func (ld *Load) stream(network, source, sink string, sinkAddress netip.Addr) error {
	receiver := ld.trafficCommand("sink", network, netip.AddrPortFrom(sinkAddress, 0).String())
	stdout, err := receiver.StdoutPipe()
	if err != nil {
		return err
	}
	if err := ld.start(sink, receiver, anyCPU); err != nil {
		return err
	}
	// Ends with the receiver at the latest, so it cannot wait for ever.
	port, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return fmt.Errorf("waiting for the %s receiver in %s: %w", network, sink, err)
	}
	sender := ld.trafficCommand("source", network, net.JoinHostPort(sinkAddress.String(), strings.TrimSpace(port)))
	return ld.start(source, sender, anyCPU)
}

func (ld *Load) trafficCommand(role, network, address string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{trafficArgv0, role, network, address, ld.ownBound().String()}
	return cmd
}

const anyCPU = -1

type startRequest struct {
	host   string
	cmd    *exec.Cmd
	cpu    int
	result chan error
}

// start has the keeper start a process and notes it.
func (ld *Load) start(host string, cmd *exec.Cmd, cpu int) error {
	stderr := &bytes.Buffer{}
	cmd.Stderr = stderr
	request := startRequest{host: host, cmd: cmd, cpu: cpu, result: make(chan error, 1)}
	ld.starts <- request
	if err := <-request.result; err != nil {
		return fmt.Errorf("starting %s in %s: %w", strings.Join(cmd.Args, " "), host, err)
	}
	// Not waited for yet, so the pid is its own even if it has ended.
	process, err := newProcess(cmd.Process.Pid, host, strings.Join(cmd.Args, " "))
	ld.mu.Lock()
	ld.processes = append(ld.processes, process)
	ld.mu.Unlock()
	ld.running.Add(1)
	go ld.wait(process, cmd, stderr)
	return err
}

// keeper starts processes on one thread that lives as long as the load. The kernel sends a child its parent-death
// signal when the starting THREAD dies: so when the program is killed, the traffic is too, and not a moment earlier.
func (ld *Load) keeper() {
	_ = onOwnThread(func() error {
		for {
			select {
			case request := <-ld.starts:
				request.result <- ld.startHere(request)
			case <-ld.done:
				return nil
			}
		}
	})
}

// startHere starts a process with the calling thread's namespace and CPU set, both for the occasion.
func (ld *Load) startHere(request startRequest) error {
	if err := ld.lab.checkHost(request.host); err != nil {
		return err
	}
	restore, err := enterNetNS(ld.lab.NetNSPath(request.host))
	if err != nil {
		return err
	}
	defer restore()
	if request.cpu != anyCPU {
		var before, only unix.CPUSet
		if err := unix.SchedGetaffinity(0, &before); err != nil {
			return fmt.Errorf("reading the CPU affinity: %w", err)
		}
		only.Set(request.cpu)
		if err := unix.SchedSetaffinity(0, &only); err != nil {
			return fmt.Errorf("pinning to CPU %d: %w", request.cpu, err)
		}
		defer func() { _ = unix.SchedSetaffinity(0, &before) }()
	}
	// A group of its own: an interrupt at the terminal is the program's to handle, in order.
	request.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	return request.cmd.Start()
}

// allowedCPUs lists the CPUs that this process may use.
func allowedCPUs() ([]int, error) { return affinityOf(0) }

// affinityOf lists the CPUs that a process may use; 0 is the calling thread.
func affinityOf(pid int) ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(pid, &set); err != nil {
		return nil, fmt.Errorf("reading the CPU affinity: %w", err)
	}
	var cpus []int
	for cpu := range len(set) * 64 {
		if set.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus, nil
}
