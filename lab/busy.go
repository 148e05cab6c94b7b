package lab

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// busyShare is the part of a busy stretch for which the CPU is free after it. That leaves a fifth of it to all others,
// well above the twentieth below which the kernel takes the CPU away from realtime processes.
const busyShare = 4

// prepareBusy makes this process one that keeps a CPU busy: a realtime one, or others that run there would decide how
// long its stretches are.
func prepareBusy(d Delay) (work func() error, err error) {
	if d.CPU == nil {
		return nil, fmt.Errorf("%s names no CPU", d)
	}
	runtime.LockOSThread()
	if err := pinThread(*d.CPU); err != nil {
		return nil, err
	}
	if err := becomeRealtime(); err != nil {
		return nil, err
	}
	return func() error {
		pause := unix.NsecToTimespec(int64(d.Time / busyShare))
		for {
			for began := time.Now(); time.Since(began) < d.Time; {
			}
			// Not time.Sleep, which needs other threads to end it.
			_ = unix.Nanosleep(&pause, nil)
		}
	}, nil
}

// becomeRealtime lets the calling thread run before all that are not realtime threads.
func becomeRealtime() error {
	realtime := &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}
	if err := unix.SchedSetAttr(0, realtime, 0); err != nil {
		return fmt.Errorf("becoming a realtime process (CAP_SYS_NICE, and a realtime budget in its control group): %w", err)
	}
	return nil
}

// busyCPU has a kernel thread process what the delay's device receives, on one CPU, and keeps that CPU busy.
func (b *builder) busyCPU(d Delay) error {
	cpu, err := d.cpu()
	if err != nil {
		return err
	}
	d.CPU = &cpu
	host, device := d.device()
	peerHost, peer := d.peer()
	// A veth has NAPI only if it does GRO, and uses it only for packets of a sender without TSO.
	if err := b.lab.Do(host, func() error { return Offloads{GRO: On}.set(device) }); err != nil {
		return fmt.Errorf("in %s: %w", host, err)
	}
	if err := b.lab.Do(peerHost, func() error { return Offloads{TSO: Off}.set(peer) }); err != nil {
		return fmt.Errorf("in %s: %w", peerHost, err)
	}
	threads, err := threadedNAPI(b.lab.NetNSPath(host), device)
	if err != nil {
		return fmt.Errorf("giving %s in %s a NAPI thread: %w", device, host, err)
	}
	var only unix.CPUSet
	only.Set(*d.CPU)
	for _, thread := range threads {
		if err := unix.SchedSetaffinity(thread, &only); err != nil {
			return fmt.Errorf("pinning the NAPI thread of %s in %s to CPU %d: %w", device, host, *d.CPU, err)
		}
	}
	return b.resident(d)
}

// threadedNAPI has kernel threads do a device's NAPI, and returns their process IDs. The kernel tells these since 6.8
// only, so new threads of that name are looked for, while no other lab makes any.
func threadedNAPI(netns, device string) ([]int, error) {
	lock, err := os.Open(stateDir) // which is there as long as a lab is
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return nil, fmt.Errorf("locking %s: %w", stateDir, err)
	}
	before, err := napiThreads(device)
	if err != nil {
		return nil, err
	}
	err = inNetNSWithSysfs(netns, func() error {
		err := os.WriteFile(filepath.Join("/sys/class/net", device, "threaded"), []byte("1"), 0)
		if errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("%w (Linux 5.12)", err)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	after, err := napiThreads(device)
	if err != nil {
		return nil, err
	}
	threads := slices.DeleteFunc(after, func(pid int) bool { return slices.Contains(before, pid) })
	if len(threads) == 0 {
		return nil, errors.New("it is not among the processes that can be seen here (kernel threads are in the first PID namespace)")
	}
	return threads, nil
}

// napiThreads lists the NAPI threads of all devices of that name, in whatever namespace.
func napiThreads(device string) ([]int, error) {
	files, err := filepath.Glob("/proc/[0-9]*/comm")
	if err != nil {
		return nil, err
	}
	// A thread's name is cut off at 15 bytes on some kernels.
	name := []byte("napi/" + device + "-")
	var threads []int
	for _, file := range files {
		comm, err := os.ReadFile(file)
		if err != nil || !bytes.HasPrefix(comm, name) {
			continue // it has ended meanwhile
		}
		pid, err := strconv.Atoi(strings.Split(file, "/")[2])
		if err != nil {
			return nil, err
		}
		threads = append(threads, pid)
	}
	return threads, nil
}
