package main

import (
	"fmt"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"tare/lab"
)

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
