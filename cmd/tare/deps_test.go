package main

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// What each part may use of this module, and why no more: see ARCHITECTURE.md.
var allowedImports = map[string][]string{
	"tare/mace":              nil, // an engine that others can use without our containers, tools and labs
	"tare/container":         nil,
	"tare/tool":              nil, // pure text: it is fuzzed and must stay free of everything that touches the host
	"tare/lab":               nil, // independent of what it is there to test
	"tare/docknet/dockctl":   nil, // a client of dockdaemon, for whoever has its socket
	"tare/stats":             nil,
	"tare/doctor":            {"tare/container", "tare/mace"},
	"tare/subtract":          {"tare/container", "tare/mace", "tare/tool"},
	"tare/hops":              {"tare/container", "tare/mace"},
	"tare/bench/arm":         {"tare/lab"},
	"tare/bench/load/prober": nil,
	"tare/bench/load":        {"tare/bench/arm", "tare/bench/load/prober"},
	"tare/bench/environment": nil,
	"tare/bench/verdict":     {"tare/stats"},
	"tare/bench/report":      {"tare/bench/environment", "tare/bench/load", "tare/bench/verdict", "tare/stats"},
	"tare/bench/page":        {"tare/bench/load", "tare/bench/report", "tare/figure", "tare/stats"},
	"tare/bench":             {"tare/bench/arm", "tare/bench/environment", "tare/bench/load", "tare/bench/report", "tare/bench/verdict", "tare/stats"},
	"tare/bench/docknet":     {"tare/bench", "tare/bench/arm", "tare/docknet/dockctl", "tare/stats"},
	"tare/bench/trial":       {"tare/bench", "tare/bench/environment", "tare/bench/report", "tare/bench/verdict", "tare/stats"},
	"tare/eval":              {"tare/container", "tare/figure", "tare/lab", "tare/mace", "tare/stats", "tare/subtract", "tare/tool"},
}

func TestDependencyDirections(t *testing.T) {
	for part, allowed := range allowedImports {
		dir := filepath.Join("..", "..", strings.TrimPrefix(part, "tare/"))
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no Go files in %s: %v", dir, err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue // a test may use anything
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
			if err != nil {
				t.Fatal(err)
			}
			for _, spec := range file.Imports {
				imported, _ := strconv.Unquote(spec.Path.Value)
				if strings.HasPrefix(imported, "tare/") && !slices.Contains(allowed, imported) {
					t.Errorf("%s imports %s: %s may only use %v", name, imported, part, allowed)
				}
			}
		}
	}
}
