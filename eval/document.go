package eval

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
)

// What is between these lines of a document is generated.
const (
	documentBegin = "<!-- eval: begin -->\n"
	documentEnd   = "<!-- eval: end -->\n"
)

// WriteMarkdown writes what a document says of this report: when and where it was made, its targets, and its tables.
func (r *Report) WriteMarkdown(out io.Writer) error {
	t := &text{out: out}
	m := r.Machine
	t.line("Measured %s on Linux %s, %d CPUs (%s, %s), in %.0f s, by:\n", r.Started.Format("2006-01-02 15:04 MST"), m.Kernel, m.CPUs, m.CPU, m.Virtualisation, r.Seconds)
	t.line("    %s\n", r.Command)
	t.line("| | measured | target | |\n|---|---|---|---|")
	for _, target := range r.Targets {
		t.line("| %s | %s | %s | %s |", target.Name, target.Measured(), target.Promised(), target.verdict())
	}
	for _, picture := range r.Pictures() {
		t.line("\n![%s](results/%s/%s.png)\n\n%s", picture.File, r.Started.Format("2006-01-02"), picture.File, picture.Caption)
	}
	var tables bytes.Buffer
	inner := &text{out: &tables}
	if r.Payload != nil {
		r.Payload.write(inner)
	}
	if r.Load != nil {
		r.Load.write(inner)
	}
	if r.Perturbation != nil {
		r.Perturbation.write(inner)
	}
	if r.Poster != nil {
		r.Poster.write(inner)
	}
	if inner.err != nil {
		return inner.err
	}
	t.line("\n```text%s```", tables.String())
	return t.err
}

// UpdateDocument replaces the generated part of a Markdown file.
func (r *Report) UpdateDocument(path string) error {
	document, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("renewing a document: %w", err)
	}
	renewed, err := r.renew(string(document))
	if err != nil {
		return fmt.Errorf("renewing %s: %w", path, err)
	}
	if err := os.WriteFile(path, []byte(renewed), 0o644); err != nil {
		return fmt.Errorf("renewing a document: %w", err)
	}
	return nil
}

func (r *Report) renew(document string) (string, error) {
	before, rest, found := strings.Cut(document, documentBegin)
	_, after, ends := strings.Cut(rest, documentEnd)
	if !found || !ends {
		return "", fmt.Errorf("it has no part between %q and %q", strings.TrimSpace(documentBegin), strings.TrimSpace(documentEnd))
	}
	var generated strings.Builder
	if err := r.WriteMarkdown(&generated); err != nil {
		return "", err
	}
	return before + documentBegin + generated.String() + documentEnd + after, nil
}
