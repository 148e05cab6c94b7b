package subtract

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// sequence keeps what two outputs get, in the order in which they get it.
type sequence struct {
	mu   sync.Mutex
	text bytes.Buffer
}

type named struct {
	name string
	to   *sequence
}

func (n named) Write(p []byte) (int, error) {
	n.to.mu.Lock()
	defer n.to.mu.Unlock()
	if len(p) > 0 {
		fmt.Fprintf(&n.to.text, "%s %s\n", n.name, bytes.TrimSpace(p))
	}
	return len(p), nil
}

// TestOutputOrder: fping's replies are on stdout and their summary on stderr, and Docker may hand the summary over first.
func TestOutputOrder(t *testing.T) {
	for name, write := range map[string]func(stdout, stderr *os.File){
		"as written": func(stdout, stderr *os.File) {
			stdout.WriteString("reply")
			stderr.WriteString("summary")
		},
		"mixed up": func(stdout, stderr *os.File) {
			stderr.WriteString("summary")
			time.Sleep(mixedUpFor / 10)
			stdout.WriteString("reply")
		},
	} {
		var got sequence
		o, err := newOutput(named{"out", &got}, named{"err", &got}, false)
		if err != nil {
			t.Fatal(err)
		}
		// The tool's own copies of its ends: start closes those that it was given.
		stdout, stderr := duplicate(t, o.stdout()), duplicate(t, o.stderr())
		o.start()
		write(stdout, stderr)
		stdout.Close()
		stderr.Close()
		o.wait()
		if want := "out reply\nerr summary\n"; got.text.String() != want {
			t.Errorf("%s: %q, want %q", name, got.text.String(), want)
		}
	}
}

// TestOutputCarriesAll: the one output does not wait for the other, however much there is.
func TestOutputCarriesAll(t *testing.T) {
	var stdout, stderr bytes.Buffer
	o, err := newOutput(&stdout, &stderr, false)
	if err != nil {
		t.Fatal(err)
	}
	tool := duplicate(t, o.stderr())
	o.start() // stdout ends at once
	text := strings.Repeat("complaint\n", 100_000)
	if _, err := tool.WriteString(text); err != nil {
		t.Fatal(err)
	}
	tool.Close()
	o.wait()
	if stderr.String() != text || stdout.Len() != 0 {
		t.Errorf("%d bytes on stderr and %d on stdout, want %d and 0", stderr.Len(), stdout.Len(), len(text))
	}
}

func duplicate(t *testing.T, file *os.File) *os.File {
	t.Helper()
	other, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", file.Fd()), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return other
}
