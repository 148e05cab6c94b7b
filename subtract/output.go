package subtract

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// output carries what a tool writes to who reads it here. One goroutine reads, what is on stdout before what is on
// stderr, because fping writes its replies to the one and then their summary to the other.
type output struct {
	readers []*os.File
	writers []*os.File // the tool's ends
	to      []io.Writer
	done    chan struct{}
}

// newOutput makes two pipes; or one terminal for both, so that a tool that would hold its lines back does not.
func newOutput(stdout, stderr io.Writer, terminal bool) (*output, error) {
	o := &output{done: make(chan struct{})}
	if terminal {
		master, slave, err := pty.Open()
		if err != nil {
			return nil, fmt.Errorf("making a terminal for the tool's output: %w", err)
		}
		if err := keepLineBreaks(slave); err != nil {
			closeFiles([]*os.File{master, slave})
			return nil, fmt.Errorf("setting up the terminal for the tool's output: %w", err)
		}
		o.readers, o.writers, o.to = []*os.File{master}, []*os.File{slave}, []io.Writer{stdout}
		_ = pty.InheritSize(os.Stdout, slave) // else it has none, which tools know to handle
		return o, nil
	}
	for _, to := range []io.Writer{stdout, stderr} {
		r, w, err := os.Pipe()
		if err != nil {
			closeFiles(o.readers, o.writers)
			return nil, fmt.Errorf("making a pipe for the tool's output: %w", err)
		}
		o.readers, o.writers, o.to = append(o.readers, r), append(o.writers, w), append(o.to, to)
	}
	return o, nil
}

// keepLineBreaks switches the terminal's output processing off: the one that all this goes to has its own, and does not
// want a second carriage return.
func keepLineBreaks(terminal *os.File) error {
	state, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
	if err != nil {
		return err
	}
	state.Oflag &^= unix.OPOST
	return unix.IoctlSetTermios(int(terminal.Fd()), unix.TCSETS, state)
}

func closeFiles(sets ...[]*os.File) {
	for _, files := range sets {
		for _, file := range files {
			file.Close()
		}
	}
}

func (o *output) stdout() *os.File { return o.writers[0] }
func (o *output) stderr() *os.File { return o.writers[len(o.writers)-1] }

// start begins to read, once the tool holds its ends, or will never do so.
func (o *output) start() {
	closeFiles(o.writers)
	go func() {
		defer close(o.done)
		defer closeFiles(o.readers)
		o.copy()
	}()
}

// mixedUpFor is how long what a tool has written to stdout may come after what it has written later to stderr: Docker
// carries the two on ways of their own.
const mixedUpFor = 50 * time.Millisecond

func (o *output) copy() {
	var buffer [16 << 10]byte
	last := 0 // whose turn it was
	open := make([]unix.PollFd, len(o.readers))
	for i, r := range o.readers {
		open[i] = unix.PollFd{Fd: int32(r.Fd()), Events: unix.POLLIN}
	}
	for left := len(open); left > 0; {
		if _, err := unix.Poll(open, -1); err != nil && err != unix.EINTR {
			return
		}
		for i := range open {
			if open[i].Revents == 0 {
				continue
			}
			if i > last && open[0].Fd >= 0 {
				if n, _ := unix.Poll(open[:1], int(mixedUpFor.Milliseconds())); n > 0 {
					i = 0
				}
			}
			last = i
			n, err := o.readers[i].Read(buffer[:])
			o.to[i].Write(buffer[:n])
			if err != nil { // a terminal ends with EIO
				open[i].Fd = -1
				left--
			}
			break // to look at stdout again before stderr
		}
	}
}

// wait returns when all outputs have ended.
func (o *output) wait() { <-o.done }
