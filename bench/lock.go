package bench

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// LockPath is locked by a running benchmark: two at once would measure each other.
var LockPath = "/run/tare/bench.lock"

// ErrBusy is what a second benchmark gets.
var ErrBusy = errors.New("another benchmark is running")

// Lock is held by a benchmark. The kernel lets go of it when the holder dies, however that happens.
type Lock struct{ file *os.File }

// TakeLock takes the lock, or fails at once with ErrBusy, and its holder's process ID.
func TakeLock() (*Lock, error) {
	for {
		if err := os.MkdirAll(filepath.Dir(LockPath), 0o755); err != nil {
			return nil, fmt.Errorf("locking out other benchmarks: %w", err)
		}
		file, err := os.OpenFile(LockPath, os.O_RDWR|os.O_CREATE, 0o644)
		if errors.Is(err, os.ErrNotExist) {
			continue // somebody else took the empty directory away
		}
		if err != nil {
			return nil, fmt.Errorf("locking out other benchmarks: %w", err)
		}
		lock, again, err := claim(file)
		if !again {
			return lock, err
		}
	}
}

// claim locks an open lock file; again where its holder removed it between our opening and our locking it.
func claim(file *os.File) (lock *Lock, again bool, err error) {
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer file.Close()
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, false, fmt.Errorf("locking %s: %w", LockPath, err)
		}
		return nil, false, fmt.Errorf("%w: process %s holds %s: wait for it, or end it", ErrBusy, holder(file), LockPath)
	}
	mine, err := file.Stat()
	if err == nil {
		var now os.FileInfo
		if now, err = os.Stat(LockPath); err == nil && os.SameFile(mine, now) {
			if err = file.Truncate(0); err == nil {
				_, err = file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
			}
			if err == nil {
				return &Lock{file}, false, nil
			}
			file.Close()
			return nil, false, fmt.Errorf("locking out other benchmarks: %w", err)
		}
	}
	file.Close()
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, false, fmt.Errorf("locking %s: %w", LockPath, err)
	}
	return nil, true, nil
}

func holder(file *os.File) string {
	text, _ := io.ReadAll(io.LimitReader(file, 20))
	if pid := strings.TrimSpace(string(text)); pid != "" {
		return pid
	}
	return "of unknown number" // it has the lock, and has not written yet
}

// Release lets others go. The file goes while it is locked, so that nobody locks one that is about to go.
func (l *Lock) Release() {
	os.Remove(LockPath)
	os.Remove(filepath.Dir(LockPath)) // fails while it is not empty
	l.file.Close()
}
