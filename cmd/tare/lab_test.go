package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"tare/lab"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"tare": main})
}

// TestLabScripts needs root. Each script has a lab name of its own in $LAB, and its lab is removed if the script
// fails to.
func TestLabScripts(t *testing.T) {
	scripts := 0
	testscript.Run(t, testscript.Params{
		Dir:  "testdata/lab",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
		Setup: func(env *testscript.Env) error {
			scripts++
			name := fmt.Sprintf("test-%d-cli%d", os.Getpid(), scripts)
			env.Setenv("LAB", name)
			env.Defer(func() { _, _ = lab.Down(name) })
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
