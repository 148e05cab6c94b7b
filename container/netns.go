package container

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// ownNetNS is the calling process's network namespace, the host's where tare runs on the host. It is the main
// thread's, which never leaves it.
const ownNetNS = "/proc/self/ns/net"

// isOwnNetNS reports whether path is this process's network namespace. An error means that path is none at all.
func isOwnNetNS(path string) (bool, error) {
	same, err := sameNetNS(path, ownNetNS)
	if err != nil && errors.Is(err, os.ErrPermission) {
		return false, fmt.Errorf("%w (other users' processes are root's to look at)", err)
	}
	return same, err
}

// sameNetNS reports whether two paths open the same network namespace.
func sameNetNS(a, b string) (bool, error) {
	var stats [2]unix.Stat_t
	for i, path := range []string{a, b} {
		fd, err := openNetNS(path)
		if err != nil {
			return false, err
		}
		err = unix.Fstat(fd, &stats[i])
		unix.Close(fd)
		if err != nil {
			return false, fmt.Errorf("stat %s: %w", path, err)
		}
	}
	return stats[0].Ino == stats[1].Ino && stats[0].Dev == stats[1].Dev, nil
}

// openNetNS opens a network namespace, and nothing else: a file under /run/netns whose mount is gone opens too,
// but leads nowhere.
func openNetNS(path string) (int, error) {
	// O_NONBLOCK: a path to a FIFO must not hang.
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: path, Err: err}
	}
	kind, err := unix.IoctlRetInt(fd, unix.NS_GET_NSTYPE)
	if err != nil || kind != unix.CLONE_NEWNET {
		unix.Close(fd)
		return -1, fmt.Errorf("%s is not a network namespace", path)
	}
	return fd, nil
}

// InNetNS runs fn on a thread that is inside the network namespace. Goroutines that fn starts are not. It returns
// fn's error.
func InNetNS(path string, fn func() error) error {
	namespace, err := openNetNS(path)
	if err != nil {
		return err
	}
	defer unix.Close(namespace)

	result := make(chan error, 1)
	go func() {
		// Never unlocked on the way out by error: the runtime then ends the thread with the goroutine, so that no
		// other code ever runs in a namespace it does not expect.
		runtime.LockOSThread()
		before, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			result <- fmt.Errorf("opening the present network namespace: %w", err)
			return
		}
		defer unix.Close(before)
		if err := unix.Setns(namespace, unix.CLONE_NEWNET); err != nil {
			result <- fmt.Errorf("entering network namespace %s: %w", path, err)
			return
		}
		err = fn()
		if unix.Setns(before, unix.CLONE_NEWNET) == nil {
			runtime.UnlockOSThread()
		}
		result <- err
	}()
	return <-result
}

// NetNSCookie returns the kernel's number for a network namespace, which is never used twice before the next boot.
// eBPF programs see the same number. It needs Linux 5.14.
func NetNSCookie(path string) (uint64, error) {
	var cookie uint64
	err := InNetNS(path, func() error {
		// A socket remembers the namespace that it was made in.
		socket, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(socket)
		cookie, err = unix.GetsockoptUint64(socket, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
		return err
	})
	if errors.Is(err, unix.ENOPROTOOPT) {
		err = fmt.Errorf("%w: the kernel is older than Linux 5.14", err)
	}
	if err != nil {
		return 0, fmt.Errorf("cookie of network namespace %s: %w", path, err)
	}
	return cookie, nil
}
