package eval

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// WriteJSON writes the raw output.
func (r *Report) WriteJSON(out io.Writer) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", " ")
	return encoder.Encode(r)
}

// The files that Save writes.
const (
	savedJSON = "eval.json"
	savedText = "eval.txt"
	savedHTML = "eval.html"
)

// Read reads a report that Save has written.
func Read(in io.Reader) (*Report, error) {
	report := &Report{}
	if err := json.NewDecoder(in).Decode(report); err != nil {
		return nil, fmt.Errorf("reading an evaluation: %w", err)
	}
	if report.Schema != Schema {
		return nil, fmt.Errorf("reading an evaluation: it is %q, and %q is understood", report.Schema, Schema)
	}
	return report, nil
}

// Save writes the raw output, its renderings and its figures into a directory, which is made where it is not there. All say by which
// command and on which machine they came about.
func (r *Report) Save(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("saving the results: %w", err)
	}
	for name, write := range map[string]func(io.Writer) error{savedJSON: r.WriteJSON, savedText: r.WriteText, savedHTML: r.WriteHTML} {
		if err := saveFile(filepath.Join(dir, name), write); err != nil {
			return fmt.Errorf("saving the results: %w", err)
		}
	}
	for _, picture := range r.Pictures() {
		if err := saveFile(filepath.Join(dir, picture.File+".png"), picture.Figure.WritePNG); err != nil {
			return fmt.Errorf("saving the results: %w", err)
		}
	}
	return nil
}

func saveFile(path string, write func(io.Writer) error) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := write(file); err != nil {
		file.Close()
		return err
	}
	return file.Close()
}
