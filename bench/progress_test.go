package bench

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestBar(t *testing.T) {
	var out bytes.Buffer
	Bar{&out, 200}.Draw(Progress{Doing: "round 3 of 12: bridge", Done: 0.25, Left: 75 * time.Second})
	if got, want := out.String(), "\r\x1b[K██████░░░░░░░░░░░░░░░░░░  25%  1:15 left  round 3 of 12: bridge"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	out.Reset()
	Bar{&out, 40}.Draw(Progress{Doing: strings.Repeat("x", 100), Done: 2, Left: 2 * time.Hour})
	if got := []rune(strings.TrimPrefix(out.String(), "\r\x1b[K")); len(got) != 39 {
		t.Errorf("%d characters on a terminal of 40", len(got))
	}
	out.Reset()
	Bar{&out, 40}.Clear()
	if out.String() != "\r\x1b[K" {
		t.Errorf("%q", out.String())
	}
}
