package eval

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// tracefs is a mount of it that has no place in the file system: it is reached by its descriptor, seen by nobody else,
// and gone with the process.
type tracefs struct {
	mount *os.File
	made  int
}

func openTracefs() (_ *tracefs, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("mounting tracefs: %w", err)
		}
	}()
	context, err := unix.Fsopen("tracefs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, err
	}
	defer unix.Close(context)
	if err := unix.FsconfigCreate(context); err != nil {
		return nil, err
	}
	fd, err := unix.Fsmount(context, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return &tracefs{mount: os.NewFile(uintptr(fd), "tracefs")}, nil
}

func (t *tracefs) path(elements ...string) string {
	return filepath.Join(append([]string{fmt.Sprintf("/proc/self/fd/%d", t.mount.Fd())}, elements...)...)
}

func (t *tracefs) close() { t.mount.Close() }

// An instance is the kernel's, whoever made it: its name carries the process.
const instancePrefix = "tare-eval-"

// removeStaleInstances removes the instances of evaluations that were killed.
func removeStaleInstances() {
	t, err := openTracefs()
	if err != nil {
		return
	}
	defer t.close()
	entries, _ := os.ReadDir(t.path("instances"))
	for _, entry := range entries {
		var pid, n int
		if _, err := fmt.Sscanf(entry.Name(), instancePrefix+"%d-%d", &pid, &n); err == nil && isDead(pid) {
			_ = unix.Rmdir(t.path("instances", entry.Name()))
		}
	}
}

// ftrace is an instance that traces events and a reader that throws them away. It reads the binary buffers, as trace-cmd does:
// nothing is formatted, so that what is compared with is ftrace at its best.
type ftrace struct {
	dir     string
	readers []int
	stopped context.CancelFunc
	done    sync.WaitGroup
	bytes   int64
}

// start begins to trace the given events, GROUP/NAME each, of the whole machine: it cannot be told a namespace.
func (t *tracefs) start(events []string) (_ *ftrace, err error) {
	t.made++
	f := &ftrace{dir: t.path("instances", instancePrefix+strconv.Itoa(os.Getpid())+"-"+strconv.Itoa(t.made)), stopped: func() {}}
	if err := os.Mkdir(f.dir, 0o700); err != nil {
		return nil, fmt.Errorf("making an instance of ftrace: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.stop())
		}
	}()
	if err := f.openReaders(); err != nil {
		return nil, err
	}
	for _, event := range events {
		if err := os.WriteFile(filepath.Join(f.dir, "events", event, "enable"), []byte("1"), 0); err != nil {
			return nil, fmt.Errorf("enabling %s: %w", event, strip(err))
		}
	}
	var ctx context.Context
	ctx, f.stopped = context.WithCancel(context.Background())
	f.done.Go(func() { f.read(ctx) })
	return f, nil
}

func (f *ftrace) openReaders() error {
	paths, err := filepath.Glob(filepath.Join(f.dir, "per_cpu", "cpu*", "trace_pipe_raw"))
	if err != nil || len(paths) == 0 {
		return errors.New("opening the buffers of ftrace: there are none")
	}
	for _, path := range paths {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("opening a buffer of ftrace: %w", err)
		}
		f.readers = append(f.readers, fd)
	}
	return nil
}

// read empties the buffers as often as tare empties its own.
func (f *ftrace) read(ctx context.Context) {
	buffer := make([]byte, 256<<10)
	tick := time.NewTicker(drainEvery)
	defer tick.Stop()
	for {
		for _, fd := range f.readers {
			for {
				n, err := unix.Read(fd, buffer)
				if n <= 0 || err != nil {
					break
				}
				f.bytes += int64(n)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// stop ends it and removes the instance. A trace without any event is an error: it would have measured nothing.
func (f *ftrace) stop() error {
	f.stopped()
	f.done.Wait()
	_ = os.WriteFile(filepath.Join(f.dir, "events", "enable"), []byte("0"), 0)
	for _, fd := range f.readers {
		unix.Close(fd)
	}
	// The kernel lets go of a reader a moment after its last descriptor is closed.
	var err error
	for range 50 {
		if err = unix.Rmdir(f.dir); !errors.Is(err, unix.EBUSY) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err != nil {
		return fmt.Errorf("removing an instance of ftrace: %w", err)
	}
	if f.readers != nil && f.bytes == 0 {
		return errors.New("ftrace traced nothing")
	}
	return nil
}

// strip takes the path out of an error: it names a descriptor, which says nothing.
func strip(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
