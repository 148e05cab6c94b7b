package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// What each part may use of this module, and why no more: see ARCHITECTURE.md.
var allowedImports = map[string][]string{
	"tare/mace":      nil, // an engine that others can use without our containers, tools and labs
	"tare/container": nil,
	"tare/tool":      nil, // pure text: it is fuzzed and must stay free of everything that touches the host
	"tare/lab":       nil, // independent of what it is there to test
	"tare/stats":     nil,
	"tare/doctor":    {"tare/container", "tare/mace"},
	"tare/subtract":  {"tare/container", "tare/mace", "tare/tool"},
	"tare/eval":      {"tare/container", "tare/lab", "tare/mace", "tare/stats", "tare/subtract", "tare/tool"},
}

func TestDependencyDirections(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", "{{.ImportPath}}: {{join .Imports \" \"}}", "tare/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		path, imports, _ := strings.Cut(strings.TrimSpace(line), ": ")
		allowed, known := allowedImports[path]
		if !known {
			continue // the program and the tests' helpers may use anything
		}
		for _, imported := range strings.Fields(imports) {
			if strings.HasPrefix(imported, "tare/") && !slices.Contains(allowed, imported) {
				t.Errorf("%s imports %s: it may only use %v", path, imported, allowed)
			}
		}
	}
}
