package eval

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What docs/accuracy.md says is what its results say, and its pictures are there. `tare eval show --document` renews it.
func TestAccuracyDocument(t *testing.T) {
	document, err := os.ReadFile("../docs/accuracy.md")
	if err != nil {
		t.Fatal(err)
	}
	saved, err := filepath.Glob("../docs/results/*/eval.json")
	if err != nil || len(saved) == 0 {
		t.Fatalf("no results: %v", err)
	}
	raw, err := os.ReadFile(slices.Max(saved))
	if err != nil {
		t.Fatal(err)
	}
	report, err := Read(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	renewed, err := report.renew(string(document))
	if err != nil {
		t.Fatal(err)
	}
	if renewed != string(document) {
		t.Errorf("docs/accuracy.md is not what %s gives: run tare eval show --document docs/accuracy.md %[1]s", slices.Max(saved))
	}
	for _, part := range strings.Split(string(document), "](results/")[1:] {
		picture, _, _ := strings.Cut(part, ")")
		if _, err := os.Stat(filepath.Join("../docs/results", picture)); err != nil {
			t.Error(err)
		}
	}
}

func TestRenewRefuses(t *testing.T) {
	for _, document := range []string{"", "nothing here\n", documentBegin, documentEnd + documentBegin} {
		if _, err := (&Report{}).renew(document); err == nil {
			t.Errorf("%q was renewed", document)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	for _, text := range []string{"", "{}", `{"schema":"tare-eval/0"}`, "[1]"} {
		if _, err := Read(strings.NewReader(text)); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}
