package tool

import (
	"bytes"
	"io"
)

// MaxLine is the longest line that is looked at. Longer ones pass as they are.
const MaxLine = 64 << 10

// maxHeldReturns: a terminal turns "\n" into "\r\n", and a tool's own "\r\n"
// into "\r\r\n".
const maxHeldReturns = 2

// Stream annotates one output of a tool; see Annotator.Stream. Every byte goes
// to the output by the end of the Write that brought it, before its line is
// complete: ping -f draws its dots, traceroute its probes, one at a time. Only
// carriage returns at the very end wait for what follows, since an annotation
// must come before those that end a line.
type Stream struct {
	a   *Annotator
	out io.Writer

	line    []byte // the line so far
	long    bool   // it is over MaxLine: line is no longer kept
	returns int    // carriage returns held back
	pending []byte // for out
	err     error  // the first of out's
}

// Write takes what the tool wrote. All of p is understood, even if out fails.
func (s *Stream) Write(p []byte) (int, error) {
	s.a.mu.Lock()
	defer s.a.mu.Unlock()
	n := len(p)
	for {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			break
		}
		s.add(p[:i])
		s.end("\r\r"[:s.returns] + "\n")
		p = p[i+1:]
	}
	s.add(p)
	s.flush()
	return n, s.err
}

// Close handles what follows the last newline.
func (s *Stream) Close() error {
	s.a.mu.Lock()
	defer s.a.mu.Unlock()
	// A number at the very end may have lost digits when the tool was killed.
	cut := len(s.line) > 0 && (s.line[len(s.line)-1] == '.' || digits(string(s.line[len(s.line)-1:]), 1))
	held := "\r\r"[:s.returns]
	if len(s.line) > 0 && !cut && held == "" {
		s.end("")
	}
	s.put(held)
	s.line, s.long, s.returns = nil, false, 0
	s.flush()
	return s.err
}

// add takes a part of a line, without newlines.
func (s *Stream) add(part []byte) {
	if len(part) == 0 {
		return
	}
	text := bytes.TrimRight(part, "\r")
	returns := len(part) - len(text)
	if len(text) == 0 {
		returns += s.returns
	} else {
		s.keep([]byte("\r\r")[:s.returns])
		s.keep(text)
	}
	for ; returns > maxHeldReturns; returns-- {
		s.keep([]byte{'\r'})
	}
	s.returns = returns
}

// keep shows bytes and remembers them as part of the line.
func (s *Stream) keep(text []byte) {
	s.put(string(text))
	if s.long {
		return
	}
	if len(s.line)+len(text) > MaxLine {
		s.line, s.long = s.line[:0], true
		return
	}
	s.line = append(s.line, text...)
}

// end is the end of a line.
func (s *Stream) end(ending string) {
	if s.long {
		s.put(ending)
	} else {
		s.a.line(s, string(s.line), ending)
	}
	s.line, s.long, s.returns = s.line[:0], false, 0
}

func (s *Stream) put(text string) {
	if s.out != nil && s.err == nil {
		s.pending = append(s.pending, text...)
	}
}

func (s *Stream) flush() {
	if len(s.pending) > 0 && s.err == nil {
		_, s.err = s.out.Write(s.pending)
	}
	s.pending = s.pending[:0]
}
