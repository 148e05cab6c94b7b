package bench

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Progress is where a benchmark is.
type Progress struct {
	Doing string  // in words
	Done  float64 // of everything, from 0 to 1
	Left  time.Duration
}

// Bar draws progress on a terminal, over one line.
type Bar struct {
	Out   io.Writer
	Width int // of the terminal
}

// Draw shows p in place of what was shown before.
func (b Bar) Draw(p Progress) {
	const cells = 24
	full := int(min(max(p.Done, 0), 1)*cells + 0.5)
	line := fmt.Sprintf("%s%s %3.0f%%  %s left  %s", strings.Repeat("█", full), strings.Repeat("░", cells-full), p.Done*100, clock(p.Left), p.Doing)
	if runes := []rune(line); b.Width > 1 && len(runes) >= b.Width {
		line = string(runes[:b.Width-1])
	}
	fmt.Fprintf(b.Out, "\r\x1b[K%s", line)
}

// Clear takes the bar away.
func (b Bar) Clear() { fmt.Fprint(b.Out, "\r\x1b[K") }

// clock is a time as people say it while they wait.
func clock(d time.Duration) string {
	s := int(max(0, d).Seconds() + 0.5)
	if s < 3600 {
		return fmt.Sprintf("%d:%02d", s/60, s%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
}
