package report_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"

	"tare/bench/report"
	"tare/bench/report/reporttest"
)

func encode(t testing.TB, r *report.Report) []byte {
	t.Helper()
	text, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestSaveAndLoad(t *testing.T) {
	r := reporttest.New(1, 8, reporttest.Arm{Name: "bridge", RTTUs: 22})
	path := filepath.Join(t.TempDir(), "x.tare.json")
	if err := r.Save(path); err != nil {
		t.Fatal(err)
	}
	loaded, err := report.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := json.Marshal(r)
	b, _ := json.Marshal(loaded)
	if !bytes.Equal(a, b) {
		t.Errorf("loaded is not what was saved:\n%.2000s\n%.2000s", a, b)
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
		t.Errorf("%d files where one was saved", len(entries))
	}
	// Saving again replaces the file.
	if err := r.Save(path); err != nil {
		t.Error(err)
	}
}

// What is in the file follows the schema, and the schema has no field that no file has.
func TestSchema(t *testing.T) {
	r := reporttest.New(1, 7, reporttest.Arm{Name: "bridge", RTTUs: 22})
	text := encode(t, r)
	if err := report.Validate(text); err != nil {
		t.Fatal(err)
	}
	// No list is null in a report of nothing.
	empty := &report.Report{Experiments: []report.Experiment{{Arms: make([]report.Arm, 1), Rounds: []report.Round{{Runs: make([]report.Run, 1)}}}}}
	if text := encode(t, empty); bytes.Contains(text, []byte("null")) {
		t.Errorf("%s", text)
	}
	var schema map[string]any
	if err := json.Unmarshal(report.SchemaJSON, &schema); err != nil {
		t.Fatal(err)
	}
	compareWithType(t, schema, schema, "report", reflect.TypeFor[report.Report]())
}

// compareWithType holds an object of the schema against a Go type: the same fields, required where always there.
func compareWithType(t *testing.T, root, object map[string]any, at string, is reflect.Type) {
	t.Helper()
	if ref, ok := object["$ref"].(string); ok {
		object = root["$defs"].(map[string]any)[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
	}
	for is.Kind() == reflect.Pointer {
		is = is.Elem()
	}
	switch {
	case is.Kind() == reflect.Slice:
		compareWithType(t, root, object["items"].(map[string]any), at+"[]", is.Elem())
		return
	case is.Kind() != reflect.Struct || is.PkgPath() == "time":
		return
	}
	properties, _ := object["properties"].(map[string]any)
	required := map[string]bool{}
	for _, name := range object["required"].([]any) {
		required[name.(string)] = true
	}
	seen := map[string]bool{}
	for i := range is.NumField() {
		field := is.Field(i)
		if !field.IsExported() {
			continue
		}
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		property, ok := properties[name].(map[string]any)
		if !ok {
			t.Errorf("%s: the schema has no %q", at, name)
			continue
		}
		seen[name] = true
		if optional := strings.Contains(options, "omitempty"); optional == required[name] {
			t.Errorf("%s.%s is required in the schema: %v, may be missing in files: %v", at, name, required[name], optional)
		}
		compareWithType(t, root, property, at+"."+name, field.Type)
	}
	for name := range properties {
		if !seen[name] {
			t.Errorf("%s: no file has %q", at, name)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	text := encode(t, reporttest.New(1, 6))
	// change alters a report's JSON and gives it the right hash: what a careful forger would do.
	change := func(alter func(map[string]any)) []byte {
		var content map[string]any
		if err := json.Unmarshal(text, &content); err != nil {
			t.Fatal(err)
		}
		alter(content)
		altered, _ := json.Marshal(content)
		hash, err := report.Hash(altered)
		if err != nil {
			t.Fatal(err)
		}
		content["content_hash"] = hash
		altered, _ = json.Marshal(content)
		return altered
	}
	experiment := func(c map[string]any) map[string]any { return c["experiments"].([]any)[0].(map[string]any) }
	run := func(c map[string]any) map[string]any {
		return experiment(c)["rounds"].([]any)[0].(map[string]any)["runs"].([]any)[0].(map[string]any)
	}
	for _, tt := range []struct {
		name string
		text []byte
		want error
		says string
	}{
		{"nothing", nil, report.ErrForeign, ""},
		{"truncated", text[:len(text)/2], report.ErrDamaged, "ends before its end"},
		{"one digit", bytes.Replace(text, []byte(`"messages": 12000`), []byte(`"messages": 12001`), 1), report.ErrDamaged, "hash"},
		{"text", []byte("round-trip min/avg/max = 1/2/3 ms\n"), report.ErrForeign, ""},
		{"a list", []byte("[1,2]"), report.ErrForeign, ""},
		{"another program's JSON", []byte(`{"version":"1","results":[]}`), report.ErrForeign, "no schema"},
		{"another of ours", []byte(`{"schema":"tare-eval/1"}`), report.ErrVersion, "tare-eval/1"},
		{"a later version", change(func(c map[string]any) { c["schema"] = "tare-bench/2" }), report.ErrVersion, "tare-bench/2"},
		{"no environment", change(func(c map[string]any) { delete(c, "environment") }), report.ErrForeign, "$.environment is missing"},
		{"a string for a number", change(func(c map[string]any) { run(c)["messages"] = "many" }), report.ErrForeign, "$.experiments[0].rounds[0].runs[0].messages is of type string"},
		{"an unknown unit", change(func(c map[string]any) { experiment(c)["unit"] = "furlongs" }), report.ErrForeign, "furlongs"},
		{"a negative time", change(func(c map[string]any) { run(c)["wall_seconds"] = -1.5 }), report.ErrForeign, "out of bounds"},
		{"a baseline that is no arm", change(func(c map[string]any) { experiment(c)["baseline"] = "x" }), report.ErrForeign, `baseline "x"`},
		{"a run of no arm", change(func(c map[string]any) { run(c)["arm"] = "x" }), report.ErrForeign, `run of "x"`},
		{"a histogram of nonsense", change(func(c map[string]any) { run(c)["rtt_ns"] = "HISTFAAA" }), report.ErrForeign, "no compressed HdrHistogram"},
		{"no histogram", change(func(c map[string]any) { delete(run(c), "rtt_ns") }), report.ErrForeign, "no histogram"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := report.Decode(tt.text)
			if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%v, want %v with %q", err, tt.want, tt.says)
			}
		})
	}
	// What a later tare may add does no harm, and neither does another layout.
	if _, err := report.Decode(change(func(c map[string]any) { c["weather"] = map[string]any{"rain": true} })); err != nil {
		t.Errorf("with a field more: %v", err)
	}
}

func TestHistogramIsTheLibrarys(t *testing.T) {
	h := hdrhistogram.New(1, 100e9, 3)
	for _, v := range []int64{1, 20000, 20001, 20500, 1e6, 5e9} {
		if err := h.RecordValues(v, v%7+1); err != nil {
			t.Fatal(err)
		}
	}
	encoded, err := report.EncodeHistogram(h)
	if err != nil {
		t.Fatal(err)
	}
	ours, err := encoded.Decode()
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := hdrhistogram.Decode([]byte(encoded))
	if err != nil {
		t.Fatal(err)
	}
	if !ours.Equals(h) || !ours.Equals(theirs) {
		t.Error("decoded is not what was encoded")
	}
}

func TestHistogramRefuses(t *testing.T) {
	encoded, err := report.EncodeHistogram(hdrhistogram.New(1, 100e9, 3))
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := base64.StdEncoding.DecodeString(string(encoded))
	for name, text := range map[string]string{
		"empty": "", "no base64": "!", "short": "HIST", "cut off": base64.StdEncoding.EncodeToString(raw[:len(raw)-3]),
		"another cookie": base64.StdEncoding.EncodeToString(append([]byte{1}, raw[1:]...)),
	} {
		if _, err := report.Histogram(text).Decode(); err == nil {
			t.Errorf("%s was decoded", name)
		}
	}
}

// A disk that is full leaves what was there before, and nothing else.
func TestSaveOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=16k"); err != nil {
		t.Fatalf("mounting a small file system (needs root): %v", err)
	}
	defer func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	}()
	path := filepath.Join(dir, "x.tare.json")
	if err := os.WriteFile(path, []byte("before"), 0o644); err != nil {
		t.Fatal(err)
	}
	err := reporttest.New(1, 20).Save(path)
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), path) {
		t.Errorf("%v", err)
	}
	if text, _ := os.ReadFile(path); string(text) != "before" {
		t.Errorf("the earlier file is now %.40q", text)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("%d files", len(entries))
	}
	if err := reporttest.New(1, 1).Save(filepath.Join(dir, "no", "such", "directory.tare.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func FuzzDecode(f *testing.F) {
	small := reporttest.New(1, 1)
	h := hdrhistogram.New(1, 100e9, 3)
	_ = h.RecordValue(20000)
	for i := range small.Experiments[0].Rounds[0].Runs {
		small.Experiments[0].Rounds[0].Runs[i].RTT, _ = report.EncodeHistogram(h) // a short one: mutations fall elsewhere, too
	}
	small.Experiments[0].Results = nil
	text := encode(f, small)
	f.Add(text)
	f.Add(text[:len(text)/3])
	f.Add([]byte(`{"schema":"tare-bench/1"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		// The hash would keep nearly every mutation from what is behind it, so it is made right.
		if hash, err := report.Hash(text); err == nil {
			var content map[string]any
			if json.Unmarshal(text, &content) == nil {
				content["content_hash"] = hash
				text, _ = json.Marshal(content)
			}
		}
		r, err := report.Decode(text)
		if err != nil {
			return
		}
		if _, err := r.Encode(); err != nil {
			t.Errorf("read, and not written: %v", err)
		}
	})
}

func FuzzHistogram(f *testing.F) {
	h := hdrhistogram.New(1, 100e9, 3)
	_ = h.RecordValue(20000)
	encoded, _ := report.EncodeHistogram(h)
	raw, _ := base64.StdEncoding.DecodeString(string(encoded))
	f.Add(raw)
	f.Fuzz(func(t *testing.T, raw []byte) {
		h, err := report.Histogram(base64.StdEncoding.EncodeToString(raw)).Decode()
		if err == nil && h.TotalCount() < 0 {
			t.Errorf("%d values", h.TotalCount())
		}
	})
}
