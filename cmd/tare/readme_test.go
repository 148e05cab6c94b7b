package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tare/lab"
)

// snippet is a block of a document that shows commands. What it is for the test is said in a comment before it:
// <!-- test: lab --> is run, with a lab of the default name up; <!-- test: none (why) --> is not.
type snippet struct {
	where string // file and line
	mark  string // lab or none; empty if forgotten
	lines []string
}

var (
	fence = regexp.MustCompile("^```(console|sh)$")
	mark  = regexp.MustCompile(`^<!-- test: (lab|none)( \(.*\))? -->$`)
)

// snippets finds the blocks whose first line is a command, "$ ".
func snippets(name, document string) (found []snippet) {
	lines := strings.Split(document, "\n")
	for i := 0; i < len(lines); i++ {
		if !fence.MatchString(lines[i]) {
			continue
		}
		s := snippet{where: fmt.Sprintf("%s:%d", name, i+1)}
		if i > 0 {
			if m := mark.FindStringSubmatch(lines[i-1]); m != nil {
				s.mark = m[1]
			}
		}
		for i++; i < len(lines) && lines[i] != "```"; i++ {
			s.lines = append(s.lines, lines[i])
		}
		if len(s.lines) > 0 && strings.HasPrefix(s.lines[0], "$ ") {
			found = append(found, s)
		}
	}
	return found
}

// TestDocuments runs the commands that README.md and the guides show, and compares what comes out with what they show.
func TestDocuments(t *testing.T) {
	root := filepath.Join("..", "..")
	guides, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, path := range append([]string{filepath.Join(root, "README.md")}, guides...) {
		document, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name, _ := filepath.Rel(root, path)
		for _, s := range snippets(name, string(document)) {
			switch s.mark {
			case "":
				t.Errorf("%s: say before the block whether it is to be tested: <!-- test: lab --> or <!-- test: none (why) -->", s.where)
			case "lab":
				ran++
				t.Run(s.where, func(t *testing.T) { runSnippet(t, s) })
			}
		}
	}
	if ran == 0 {
		t.Error("no command was run: are the blocks still found?")
	}
}

func runSnippet(t *testing.T, s snippet) {
	l, err := lab.Up(t.Context(), lab.Options{Name: lab.DefaultName, Containers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = lab.Down(l.Name()) }()
	dir := t.TempDir() // for the files that a block makes
	for i := 0; i < len(s.lines); {
		command := strings.TrimPrefix(s.lines[i], "$ ")
		for i++; strings.HasSuffix(command, "\\") && i < len(s.lines); i++ {
			command = strings.TrimSuffix(command, "\\") + s.lines[i]
		}
		var want []string
		for ; i < len(s.lines) && !strings.HasPrefix(s.lines[i], "$ "); i++ {
			want = append(want, s.lines[i])
		}
		var output []byte
		var err error
		complaint := ""
		for range attempts {
			shell := exec.Command("sh", "-c", command)
			shell.Dir = dir
			output, err = shell.CombinedOutput()
			complaint = compareShapes(want, strings.Split(strings.TrimSuffix(string(output), "\n"), "\n"))
			if err != nil || complaint == "" || !unseen(string(output)) {
				break
			}
		}
		if err != nil {
			t.Errorf("%s: %s: %s\n%s", s.where, command, err, output)
			continue
		}
		if complaint != "" {
			t.Errorf("%s: %s: %s\nthe document shows\n%s\nand it printed\n%s", s.where, command, complaint, strings.Join(want, "\n"), output)
		}
	}
}

// A word that holds a digit, or stands for a number that is not there, is a measurement.
var measured = regexp.MustCompile(`[0-9]|^\?$|^\*$`)

// shape is what of a line is the same in every run: its words without measurements.
func shape(line string) string {
	var words []string
	for word := range strings.FieldsSeq(line) {
		if !measured.MatchString(word) {
			words = append(words, word)
		}
	}
	return strings.Join(words, " ")
}

// compareShapes says where the shapes differ. Lines that repeat one shape, like replies, count once, in as many as
// there are. A document may stop early, and "..." in it stands for any number of lines.
func compareShapes(want, got []string) string {
	shapes := func(lines []string) []string {
		var all []string
		for _, line := range lines {
			all = append(all, shape(line))
		}
		return slices.Compact(all)
	}
	wanted, printed := shapes(want), shapes(got)
	elided := slices.Contains(wanted, "...")
	at := 0
	for _, s := range wanted {
		if s == "..." {
			continue
		}
		i := slices.Index(printed[at:], s)
		if i < 0 || i > 0 && !elided {
			return fmt.Sprintf("no line like %q where the document has it", s)
		}
		at += i + 1
	}
	return ""
}

func TestCompareShapes(t *testing.T) {
	const reply = "64 bytes from 10.78.0.2: icmp_seq=%d ttl=63 time=0.0%d ms  added=0.03%d ms  corrected=0.016%d ms"
	replies := func(n int) (lines []string) {
		for i := range n {
			lines = append(lines, fmt.Sprintf(reply, i, i, i, i))
		}
		return lines
	}
	for name, test := range map[string]struct {
		want, got []string
		same      bool
	}{
		"other numbers":    {[]string{"rtt 1.5 ms", "3 of 3 replies"}, []string{"rtt 0.1 ms", "5 of 5 replies"}, true},
		"more replies":     {append(replies(2), "end"), append(replies(5), "end"), true},
		"another word":     {[]string{"rtt 1.5 ms"}, []string{"rtt 1.5 us"}, false},
		"a line too few":   {[]string{"a", "b"}, []string{"a"}, false},
		"a line too many":  {[]string{"a", "c"}, []string{"a", "b", "c"}, false},
		"cut off":          {[]string{"a"}, []string{"a", "b"}, true},
		"left out":         {[]string{"a", "...", "z"}, []string{"a", "b", "c", "z"}, true},
		"nothing is shown": {nil, []string{"a"}, true},
		"wrong order":      {[]string{"a", "b"}, []string{"b", "a"}, false},
	} {
		if complaint := compareShapes(test.want, test.got); (complaint == "") != test.same {
			t.Errorf("%s: %q", name, complaint)
		}
	}
}

func TestSnippets(t *testing.T) {
	const document = "<!-- test: lab -->\n```console\n$ a\nb\n```\n```sh\n$ forgotten\n```\n```console\noutput only\n```\n<!-- test: none (slow) -->\n```sh\n$ c\n```\n"
	found := snippets("x.md", document)
	want := []snippet{{"x.md:2", "lab", []string{"$ a", "b"}}, {"x.md:6", "", []string{"$ forgotten"}}, {"x.md:13", "none", []string{"$ c"}}}
	if !slices.EqualFunc(found, want, func(a, b snippet) bool {
		return a.where == b.where && a.mark == b.mark && slices.Equal(a.lines, b.lines)
	}) {
		t.Errorf("found %+v, want %+v", found, want)
	}
}
