package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestEvalArguments(t *testing.T) {
	for _, tt := range []struct {
		name, args, want string
	}{
		{"unknown part", "eval speed", "unknown command"},
		{"unknown output", "eval all -o xml", "text or json"},
		{"rounds below zero", "eval lifecycle --rounds -1", "--rounds"},
		{"too many floods", "eval accuracy --floods 0,64", "--floods 64"},
		{"too many packets", "eval falsematches --packets 100000000", "--packets"},
		{"an argument too many", "eval perturbation now", "takes no arguments"},
		{"a flag of another part", "eval lifecycle --floods 3", "unknown flag"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := newRootCommand()
			root.SetArgs(strings.Fields(tt.args))
			err := root.ExecuteContext(context.Background())
			var exit exitError
			if !errors.As(err, &exit) || exit.code != 2 || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want exit code 2 and %q", err, tt.want)
			}
		})
	}
}

// Needs root. What is measured is package eval's own test's business.
func TestEvalJSON(t *testing.T) {
	var out bytes.Buffer
	root := newRootCommand()
	root.SetOut(&out)
	root.SetArgs(strings.Fields("eval falsematches --packets 500 --seed 5 -o json"))
	if err := root.ExecuteContext(context.Background()); err != nil {
		t.Fatal(err)
	}
	var report struct {
		Schema  string
		Seed    uint64
		Targets []struct {
			Name string
			Met  *bool
		}
		FalseMatches *struct{ Packets int } `json:"false_matches"`
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	if report.Schema == "" || report.Seed != 5 || len(report.Targets) == 0 || report.Targets[0].Met == nil ||
		report.FalseMatches == nil || report.FalseMatches.Packets < 500 {
		t.Errorf("%s", out.Bytes())
	}
}
