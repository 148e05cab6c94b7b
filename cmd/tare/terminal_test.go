package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/creack/pty"

	"tare/lab"
)

// onTerminal starts tare on a terminal of its own, as its session's leader, and returns the terminal's other end.
func onTerminal(t testing.TB, args ...string) (*process, *os.File) {
	t.Helper()
	p := &process{Cmd: exec.Command("tare", args...)}
	terminal, err := pty.StartWithSize(p.Cmd, &pty.Winsize{Rows: 24, Cols: 200})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		terminal.Close()
		if p.ProcessState == nil {
			_ = p.Process.Kill()
			_ = p.Wait()
		}
	})
	return p, terminal
}

// TestTerminal: whoever looks on sees each reply when it comes, and ^C ends the tool and not tare, so that both have
// their say.
func TestTerminal(t *testing.T) {
	for _, argv := range [][]string{
		{"ping", "-i", "0.1"},
		{"fping", "-l", "-p", "100"},
		{"busybox", "ping"},
	} {
		t.Run(argv[0], func(t *testing.T) {
			t.Parallel()
			l := newLab(t, lab.Options{}) // of its own: tools with the same numbers and target make each other ambiguous
			args := append([]string{"run", "--netns", c1(l), "--"}, argv...)
			interruptOnTerminal(t, append(args, l.RemoteAddr4().String()))
		})
	}
}

// interruptOnTerminal waits for two replies, types ^C and reads what comes after.
func interruptOnTerminal(t *testing.T, args []string) {
	t.Helper()
	p, terminal := onTerminal(t, args...)
	lines := bufio.NewReader(terminal)
	replies := 0
	for replies < 2 {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("after %d replies: %s", replies, err)
		}
		if strings.Contains(line, "corrected=") {
			replies++
			if !strings.HasSuffix(strings.ReplaceAll(line, "\r\r", "\r"), " ms\r\n") { // a container has a terminal, too
				t.Errorf("the annotation is not at the line's end: %q", line)
			}
		}
	}
	left := observe(t, p)
	if _, err := terminal.Write([]byte{3}); err != nil { // ^C
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(lines) // ends with EIO when all have closed the terminal
	if code := p.wait(t); code != 0 {
		t.Errorf("exit code %d, want the tool's 0", code)
	}
	if !strings.Contains(string(rest), "corrected min/avg/max") {
		t.Errorf("no statistics after ^C:\n%s", rest)
	}
	if strings.Contains(string(rest), "tare:") && !unseen(string(rest)) {
		t.Errorf("tare complains of ^C:\n%s", rest)
	}
	left.nothing()
}

// TestTerminalInput: a tool that is not understood keeps the terminal, and may read from it.
func TestTerminalInput(t *testing.T) {
	l := newLab(t, lab.Options{})
	p, terminal := onTerminal(t, "run", "--netns", c1(l), "--", "sh", "-c", "test -t 0 && test -t 1 && read -r x && echo got $x")
	if _, err := terminal.Write([]byte("typed\n")); err != nil {
		t.Fatal(err)
	}
	output, _ := io.ReadAll(terminal)
	if code := p.wait(t); code != 0 || !strings.Contains(string(output), "got typed\r\n") {
		t.Errorf("exit code %d, output %q", code, output)
	}
}
