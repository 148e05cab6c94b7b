package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tare/lab"
)

// TestRunPassesOutputThrough compares what a tool prints with what comes out, byte by byte. A tool belongs to its
// container, which may be hostile.
func TestRunPassesOutputThrough(t *testing.T) {
	l := newLab(t, lab.Options{})
	hostile := map[string]string{
		"cut off":        "64 bytes from 10.78.0.2: icmp_seq=1 ttl=63 time=0.0",
		"control":        "\x00\x01\xff\xfe\r\n\r\r\n\n\x1b[31mred\x1b[0m\b\b\n\xc3",
		"a long line":    strings.Repeat("x", 1<<20) + "\n",
		"not numbers":    "64 bytes from 10.78.0.2: icmp_seq=1 ttl=63 time=nan ms\nrtt min/avg/max/mdev = a/b/c/d ms\n",
		"no line breaks": strings.Repeat("no end ", 100_000),
		"many lines":     strings.Repeat("\n", 100_000),
		"nothing":        "",
	}
	dir := t.TempDir()
	for name, text := range hostile {
		file := filepath.Join(dir, "text")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		// A program called ping is taken for ping. The other one is not understood, and gets tare's own streams.
		for _, tool := range []string{"ping", "other"} {
			path := filepath.Join(dir, tool)
			if err := os.WriteFile(path, []byte("#!/bin/sh\ncat "+file+"; cat "+file+" >&2\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			stdout, stderr := tare(t, 0, "run", "--netns", c1(l), "--", path)
			if tool == "other" {
				stdout, _, _ = strings.Cut(stdout, "\n--- tare: ")
			}
			if stdout != text || stderr != text {
				t.Errorf("%s, of %s: %d and %d bytes came out, %d went in: %.200q", name, tool, len(stdout), len(stderr), len(text), stdout)
			}
		}
	}
}

// TestRunBelievesNoTool: lines that look like replies and belong to no packet stay uncorrected.
func TestRunBelievesNoTool(t *testing.T) {
	l := newLab(t, lab.Options{})
	path := filepath.Join(t.TempDir(), "ping")
	const script = `#!/bin/sh
echo 'PING 10.78.0.2 (10.78.0.2) 56(84) bytes of data.'
echo '64 bytes from 10.78.0.2: icmp_seq=1 ttl=63 time=0.100 ms'
echo '64 bytes from 10.78.0.2: icmp_seq=65536000 ttl=63 time=-5 ms'
`
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	stdout, stderr := tare(t, 0, "run", "--netns", c1(l), "--", path, "10.78.0.2")
	if strings.Contains(stdout, "corrected") || !strings.Contains(stdout, "time=0.100 ms  added=? (unseen)\n") {
		t.Errorf("invented replies came out as\n%s", stdout)
	}
	if !strings.Contains(stderr, "not corrected, unseen: its packets were not seen\n") {
		t.Errorf("stderr %q", stderr)
	}
}

// TestRunPassesInputOn gives a tool its input: fping reads targets there.
func TestRunPassesInputOn(t *testing.T) {
	l := newLab(t, lab.Options{})
	for input, argv := range map[string][]string{
		l.RemoteAddr4().String() + "\n" + l.GatewayAddr4().String() + "\n": {"fping", "-c", "2", "-p", "20"},
		strings.Repeat("through\n", 10_000):                                {"cat"},
	} {
		p := newProcess(append([]string{"run", "--netns", c1(l), "--"}, argv...)...)
		p.Stdin = strings.NewReader(input)
		p.start(t)
		if code := p.wait(t); code != 0 {
			t.Errorf("%v: exit code %d\n%s", argv, code, &p.stderr)
		}
		switch argv[0] {
		case "cat":
			if !strings.HasPrefix(p.stdout.String(), input) {
				t.Errorf("cat printed %d bytes, want %d", len(p.stdout.String()), len(input))
			}
		case "fping":
			if n := strings.Count(p.stdout.String(), " corrected="); n != 2 && !(n < 2 && unseen(p.stderr.String())) {
				t.Errorf("%d corrected replies, want 2, of the remote host:\n%s", n, &p.stdout)
			}
		}
	}
}
