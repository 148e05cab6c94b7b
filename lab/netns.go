package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"

	"golang.org/x/sys/unix"
)

// netnsDir is where iproute2 keeps named namespaces, so `ip netns` lists ours too.
const netnsDir = "/run/netns"

func netnsName(lab, host string) string { return "tare-" + lab + "-" + host }

func netnsPath(name string) string { return filepath.Join(netnsDir, name) }

// leftNetNS lists the names in netnsDir that belong to the lab. The part after the lab's name has no dash, so the
// namespaces of labs "a" and "a-b" are never confused.
func leftNetNS(lab string) ([]string, error) {
	entries, err := os.ReadDir(netnsDir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing namespaces of lab %q: %w", lab, err)
	}
	pattern := regexp.MustCompile(`^tare-` + regexp.QuoteMeta(lab) + `-(host|remote|c[0-9]+)$`)
	var names []string
	for _, entry := range entries {
		if pattern.MatchString(entry.Name()) {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}

// onOwnThread runs fn on a thread that dies with it, so that fn may change the thread's namespaces for good.
func onOwnThread(fn func() error) error {
	done := make(chan error, 1)
	go func() {
		// Sent by defer: fn may leave by runtime.Goexit, as a failing test does.
		err := errors.New("the function ended its goroutine")
		defer func() { done <- err }()
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			// The main thread never dies: it would hold the namespace, and be what /proc/<pid>/ns shows of the whole
			// process. It is occupied while this goroutine waits, so the next attempt gets another thread.
			defer runtime.UnlockOSThread()
			err = onOwnThread(fn)
			return
		}
		err = fn()
	}()
	return <-done
}

// inNetNS runs fn on a thread inside the network namespace that path holds.
func inNetNS(path string, fn func() error) error {
	return onOwnThread(func() error {
		restore, err := enterNetNS(path)
		if err != nil {
			return err
		}
		// The thread dies a moment after the caller goes on; leaving first means that nobody who looks then sees
		// the namespace in use.
		defer restore()
		return fn()
	})
}

// enterNetNS moves the calling thread. The caller holds runtime.LockOSThread.
func enterNetNS(path string) (restore func(), err error) {
	target, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening namespace %s: %w", path, err)
	}
	defer unix.Close(target)
	origin, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening the thread's own namespace: %w", err)
	}
	if err := unix.Setns(target, unix.CLONE_NEWNET); err != nil {
		unix.Close(origin)
		return nil, fmt.Errorf("entering namespace %s: %w", path, err)
	}
	return func() {
		_ = unix.Setns(origin, unix.CLONE_NEWNET)
		unix.Close(origin)
	}, nil
}

// createNetNS makes a namespace and gives it a name, in the way of `ip netns add`.
func createNetNS(name string) error {
	if err := prepareNetNSDir(); err != nil {
		return err
	}
	path := netnsPath(name)
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDONLY, 0o444)
	if err != nil {
		return fmt.Errorf("creating namespace %q: %w", name, err)
	}
	file.Close()
	err = onOwnThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		return unix.Mount("/proc/thread-self/ns/net", path, "none", unix.MS_BIND, "")
	})
	if err != nil {
		os.Remove(path)
		return fmt.Errorf("creating namespace %q: %w", name, err)
	}
	return nil
}

// prepareNetNSDir makes netnsDir a shared mount of its own, as `ip netns add` does. Without it, a later `ip netns add`
// would mount the directory over itself and our names could be unmounted but not removed (EBUSY).
func prepareNetNSDir() error {
	if err := os.MkdirAll(netnsDir, 0o755); err != nil {
		return fmt.Errorf("creating %s: %w", netnsDir, err)
	}
	dir, err := os.Open(netnsDir)
	if err != nil {
		return fmt.Errorf("opening %s: %w", netnsDir, err)
	}
	defer dir.Close()
	// iproute2 takes the same lock around the same steps.
	if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("locking %s: %w", netnsDir, err)
	}
	err = unix.Mount("", netnsDir, "none", unix.MS_SHARED|unix.MS_REC, "")
	if errors.Is(err, unix.EINVAL) { // not a mount point yet
		if err = unix.Mount(netnsDir, netnsDir, "none", unix.MS_BIND|unix.MS_REC, ""); err == nil {
			err = unix.Mount("", netnsDir, "none", unix.MS_SHARED|unix.MS_REC, "")
		}
	}
	if err != nil {
		return fmt.Errorf("making %s a shared mount: %w", netnsDir, err)
	}
	return nil
}

// isNetNS tells whether path holds a namespace, and not just the empty file of a creation that was killed.
func isNetNS(path string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(path, &fs) == nil && fs.Type == unix.NSFS_MAGIC
}

// deleteNetNS takes a namespace's name away; the namespace ends with its last process and socket.
func deleteNetNS(name string) error {
	path := netnsPath(name)
	for isNetNS(path) { // twice mounted if something bound the directory over itself in between
		if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
			return fmt.Errorf("unmounting namespace %q: %w", name, err)
		}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing namespace %q: %w", name, err)
	}
	return nil
}
