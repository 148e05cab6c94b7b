package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Errors that a command tells apart.
var (
	ErrForeign  = errors.New("is not a report of tare bench")
	ErrVersion  = errors.New("is a report in another format")
	ErrDamaged  = errors.New("is damaged or was changed")
	ErrTooLarge = errors.New("is too large for a report")
)

// maxBytes bounds what is read: the largest real report, of days, has a tenth of that.
const maxBytes = 256 << 20

// Suffix of a report's file.
const Suffix = ".tare.json"

// Hash is what content_hash must be: "sha256:" and the SHA-256, in hex, of the file's JSON without content_hash, with keys
// sorted, no white space, numbers as they are written, and only what JSON must escape escaped. So a file may be indented
// anew, but not changed.
func Hash(text []byte) (string, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var content map[string]any
	if err := decoder.Decode(&content); err != nil {
		return "", err
	}
	delete(content, "content_hash")
	var canonical bytes.Buffer
	encoder := json.NewEncoder(&canonical)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(content); err != nil {
		return "", err
	}
	sum := sha256.Sum256(bytes.TrimSuffix(canonical.Bytes(), []byte("\n")))
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// Encode gives the file's bytes, with the hash in them.
func (r *Report) Encode() ([]byte, error) {
	r.Schema, r.ContentHash = Schema, ""
	r.fillLists()
	text, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encoding the report: %w", err)
	}
	if r.ContentHash, err = Hash(text); err != nil {
		return nil, fmt.Errorf("encoding the report: %w", err)
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(r); err != nil {
		return nil, fmt.Errorf("encoding the report: %w", err)
	}
	return out.Bytes(), nil
}

// fillLists has no list be null, which other languages would stumble over.
func (r *Report) fillLists() {
	notNil(&r.LeftOut)
	notNil(&r.Experiments)
	notNil(&r.Method.FlagRules)
	notNil(&r.Environment.Tools)
	notNilMap(&r.Environment.Mitigations)
	notNilMap(&r.Environment.Sysctls)
	notNilMap(&r.Environment.Offloads)
	for i := range r.Experiments {
		e := &r.Experiments[i]
		notNil(&e.Tools)
		notNil(&e.Arms)
		notNil(&e.Rounds)
		notNil(&e.Results)
		for k := range e.Arms {
			notNilMap(&e.Arms[k].Describe)
		}
		for k := range e.Rounds {
			notNil(&e.Rounds[k].Runs)
			for n := range e.Rounds[k].Runs {
				notNil(&e.Rounds[k].Runs[n].Checks)
				notNil(&e.Rounds[k].Runs[n].Host.CPUs)
			}
		}
		for k := range e.Attributions {
			notNil(&e.Attributions[k].Hops)
		}
		for k := range e.Results {
			notNil(&e.Results[k].Statistics)
		}
	}
}

func notNil[T any](list *[]T) {
	if *list == nil {
		*list = []T{}
	}
}

func notNilMap(m *map[string]string) {
	if *m == nil {
		*m = map[string]string{}
	}
}

// Save writes the file in one step: there is a whole one afterwards, or none, or what was there before.
func (r *Report) Save(path string) error {
	text, err := r.Encode()
	if err != nil {
		return err
	}
	return WriteFile(path, text)
}

// WriteFile writes a file in one step.
func WriteFile(path string, text []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("saving %s: %w", path, err)
	}
	_, err = file.Write(text)
	if err == nil {
		err = file.Chmod(0o644)
	}
	if err == nil {
		err = file.Sync() // a full disk may only tell now
	}
	if closing := file.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		os.Remove(file.Name())
		return fmt.Errorf("saving %s: %w", path, err)
	}
	return nil
}

// Load reads a report from a file and works out its results.
func Load(path string) (*Report, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading a report: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	r, err := Decode(text)
	if err != nil {
		return nil, fmt.Errorf("%s %w", path, err)
	}
	return r, nil
}

// Decode reads a report and works out its results. It trusts nothing.
func Decode(text []byte) (*Report, error) {
	if len(text) > maxBytes {
		return nil, ErrTooLarge
	}
	var head struct {
		Schema      *string `json:"schema"`
		ContentHash string  `json:"content_hash"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		// A file that begins as a report does was one.
		if bytes.Contains(text[:min(200, len(text))], []byte(`"`+Schema+`"`)) {
			return nil, fmt.Errorf("%w: it ends before its end, or is no longer JSON: %w", ErrDamaged, err)
		}
		return nil, fmt.Errorf("%w: %w", ErrForeign, err)
	}
	if head.Schema == nil {
		return nil, fmt.Errorf("%w: it has no schema", ErrForeign)
	}
	if *head.Schema != Schema {
		return nil, fmt.Errorf("%w: %.40q, and this tare reads %q", ErrVersion, *head.Schema, Schema)
	}
	hash, err := Hash(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrForeign, err)
	}
	if hash != head.ContentHash {
		return nil, fmt.Errorf("%w: its content has the hash %s, and it says %.80q", ErrDamaged, hash, head.ContentHash)
	}
	if err := Validate(text); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrForeign, err)
	}
	var r Report
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrForeign, err)
	}
	if err := r.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrForeign, err)
	}
	r.Analyse()
	return &r, nil
}
