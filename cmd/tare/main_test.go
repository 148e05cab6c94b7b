package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"tare/bench/load/prober"
	"tare/container/containertest"
	"tare/lab"
)

// TestMain makes this binary answer to the name tare, too, and runs the tests on a private host, which has Docker and
// podman. There "the host" is not the network namespace of process 1, as on a machine whose Docker runs in a container.
func TestMain(m *testing.M) {
	prober.RunIfAsked()
	testscript.Main(onPrivateHost{m}, map[string]func(){"tare": main})
}

type onPrivateHost struct{ *testing.M }

func (h onPrivateHost) Run() int { return containertest.Main(h.M) }

var labs atomic.Int32

// newLab makes a lab that goes with the test.
func newLab(t testing.TB, options lab.Options) *lab.Lab {
	t.Helper()
	options.Name = fmt.Sprintf("test-%d-%d", os.Getpid(), labs.Add(1))
	l, err := lab.Up(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := lab.Down(options.Name); err != nil && !errors.Is(err, lab.ErrNotFound) {
			t.Error(err)
		}
	})
	return l
}

// c1 is the name of the first container's network namespace.
func c1(l *lab.Lab) string { return l.NetNSName(lab.Container(1)) }

// runScripts runs the scripts of a directory, each with a lab of its own. In scripts $LAB is the lab's name, $C1 and
// $HOST are the names of network namespaces, $REMOTE and $REMOTE6 the remote host's addresses.
func runScripts(t *testing.T, dir string, commands map[string]func(*testscript.TestScript, bool, []string)) {
	all := map[string]func(*testscript.TestScript, bool, []string){"exits": exits}
	for name, command := range commands {
		all[name] = command
	}
	testscript.RunT(scripts{t}, testscript.Params{
		Dir:  "testdata/" + dir,
		Cmds: all,
		Setup: func(env *testscript.Env) error {
			l := newLab(env.T().(testing.TB), lab.Options{Containers: 2})
			env.Setenv("LAB", l.Name())
			env.Setenv("C1", c1(l))
			env.Setenv("HOST", l.NetNSName(lab.Host))
			env.Setenv("REMOTE", l.RemoteAddr4().String())
			env.Setenv("REMOTE6", l.RemoteAddr6().String())
			return nil
		},
	})
}

// exits is the script command `exits CODE COMMAND...`.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if fmt.Sprint(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}
