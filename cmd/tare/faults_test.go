package main

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"tare/lab"
)

func pingForEver(l *lab.Lab, flags ...string) []string {
	args := append([]string{"run", "--netns", c1(l)}, flags...)
	return append(args, "--", "ping", "-i", "0.02", l.RemoteAddr4().String())
}

// TestSignals: what ends a run also ends its tool, and what was measured until then is told.
func TestSignals(t *testing.T) {
	for name, test := range map[string]struct {
		signal syscall.Signal
		flags  []string
		reply  string
		code   int
		want   []string
	}{
		// ping answers this one with its own statistics.
		"interrupt": {syscall.SIGINT, nil, "corrected=", 0, []string{"\nrtt min/avg/max/mdev = ", "\nadded min/avg/max/mdev = ", " replies corrected, as bare-metal)\n"}},
		// Of these it dies without a word, so all there is comes from tare.
		"terminate": {syscall.SIGTERM, nil, "corrected=", 143, []string{"\n--- tare: bare-metal, between the container and nic0 ---\n", "\nround trips: "}},
		"hang up":   {syscall.SIGHUP, nil, "corrected=", 129, []string{"\nround trips: "}},
		"json":      {syscall.SIGTERM, []string{"-o", "json"}, "matched", 143, []string{"\n{\"type\":\"summary\",", "\"coverage\":1,"}},
		"csv":       {syscall.SIGTERM, []string{"-o", "csv"}, ",matched", 143, []string{"seq,hop,", ",matched\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, lab.Options{})
			p := startUntil(t, test.reply, pingForEver(l, test.flags...)...)
			left := observe(t, p)
			p.signal(t, test.signal, test.code)
			for _, want := range test.want {
				if !strings.Contains(p.stdout.String(), want) && !(strings.Contains(want, "coverage") && unseen(p.stdout.String())) {
					t.Errorf("no %q in\n%s", want, &p.stdout)
				}
			}
			left.nothing()
		})
	}
}

// TestKill: nothing can be done at SIGKILL, and yet nothing may remain.
func TestKill(t *testing.T) {
	l := newLab(t, lab.Options{})
	pings := startUntil(t, "corrected=", pingForEver(l)...)
	watch := startUntil(t, "latency_ns", "watch", "--netns", c1(l), "-o", "json")
	for _, p := range []*process{pings, watch} {
		left := observe(t, p)
		p.signal(t, syscall.SIGKILL, 137)
		left.nothing()
	}
}

// TestClosedPipe: whoever reads the output has seen enough, as head does.
func TestClosedPipe(t *testing.T) {
	l := newLab(t, lab.Options{})
	for _, args := range [][]string{
		pingForEver(l),
		pingForEver(l, "-o", "json"),
		{"run", "--netns", c1(l), "--", "sh", "-c", "while echo more; do :; done"},
		{"watch", "--netns", c1(l), "-o", "json"},
	} {
		background := exec.Command("ping", "-q", "-i", "0.02", l.RemoteAddr4().String())
		if err := l.Start(lab.Container(1), background); err != nil {
			t.Fatal(err)
		}
		reader, writer, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		p := newProcess(args...)
		p.Stdout = writer
		p.start(t)
		writer.Close()
		if _, err := bufio.NewReader(reader).ReadString('\n'); err != nil {
			t.Error(err)
		}
		left := observe(t, p)
		reader.Close()
		if code := p.wait(t); code != 128+int(syscall.SIGPIPE) {
			t.Errorf("tare %s: exit code %d, want that of SIGPIPE\n%s", strings.Join(args, " "), code, &p.stderr)
		}
		if text := p.stderr.String(); strings.Contains(text, "tare: ") || strings.Contains(text, "panic") {
			t.Errorf("tare %s complains: %s", strings.Join(args, " "), text)
		}
		left.nothing()
		_ = background.Process.Kill()
		_ = background.Wait()
	}
}

// TestClosedStreams: a service may start tare with none of the three.
func TestClosedStreams(t *testing.T) {
	l := newLab(t, lab.Options{})
	for _, closed := range []string{"<&-", ">&-", "2>&-", "<&- 2>&-"} {
		corrected, output := 0, ""
		for range attempts { // whether packets went unseen is said on a stream that may be closed
			command := exec.Command("sh", "-c", `exec tare run --netns "$0" -- ping -c 2 -i 0.02 "$1" `+closed, c1(l), l.RemoteAddr4().String())
			text, err := command.Output()
			if err != nil {
				t.Errorf("%s: %s", closed, err)
			}
			output = string(text)
			if corrected = strings.Count(output, " corrected="); corrected == 2 {
				break
			}
		}
		if corrected != 2 && (!strings.Contains(closed, ">&-") || strings.Contains(closed, "2>&-")) {
			t.Errorf("%s: %d corrected replies, want 2:\n%s", closed, corrected, output)
		}
	}
}

// TestGroundGoesAway: the NIC, or the whole namespace, disappears while a tool runs. What was measured before stands.
func TestGroundGoesAway(t *testing.T) {
	for name, test := range map[string]struct {
		remove func(*lab.Lab) error
		note   string
	}{
		"nic": {deleteNIC, "tare: device nic0 has disappeared: packets that leave from now on are not corrected\n"},
		"namespace": {
			func(l *lab.Lab) error { _, err := lab.Down(l.Name()); return err },
			" has stopped; what follows is about what was measured until then\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, lab.Options{})
			run := startUntil(t, "corrected=", pingForEver(l)...)
			watch := startUntil(t, "latency_ns", "watch", "--netns", c1(l), "-o", "json")
			leftRun, leftWatch := observe(t, run), observe(t, watch)
			if err := test.remove(l); err != nil {
				t.Fatal(err)
			}
			if code := watch.wait(t); code != 1 {
				t.Errorf("watch: exit code %d, want 1", code)
			}
			if text := watch.stderr.String(); !strings.Contains(text, "has disappeared\n") && !strings.Contains(text, "has stopped\n") {
				t.Errorf("watch says\n%s", text)
			}
			waitUntil(t, "the run says so", func() bool { return strings.Contains(run.stderr.String(), test.note) })
			run.signal(t, syscall.SIGINT, 0)
			if !strings.Contains(run.stdout.String(), "\ncorrected min/avg/max/mdev = ") {
				t.Errorf("the statistics are missing:\n%s%s", &run.stdout, &run.stderr)
			}
			leftRun.nothing()
			leftWatch.nothing()
		})
	}
}

func deleteNIC(l *lab.Lab) error {
	return l.Command(context.Background(), lab.Host, "ip", "link", "del", lab.NIC).Run()
}

// TestToolThatIgnoresSignals ends with tare's own end all the same.
func TestToolThatIgnoresSignals(t *testing.T) {
	l := newLab(t, lab.Options{})
	p := startUntil(t, "ready", "run", "--netns", c1(l), "--", "sh", "-c", "trap '' INT TERM; echo ready; while :; do sleep 1; done")
	left := observe(t, p)
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.signal(t, syscall.SIGKILL, 137)
	left.nothing()
}
