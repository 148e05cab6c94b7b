package tool

import (
	"io"
	"math"
	"strings"
	"sync"
)

// Correction is what is known about the RTT of a Reply. Where OK is false the
// RTT stays uncorrected, and Status says why in a word or two.
type Correction struct {
	AddedUs     float64 // what the container's network added
	CorrectedUs float64 // the RTT without it
	Status      string
	OK          bool
}

// Annotator follows the output of one run of a tool. Set the fields before the
// first write; the functions are called one at a time and in the order of the
// output.
//
// Where a tool divides its output between stdout and stderr (fping: replies
// and summary), the caller has the order of the two in its hands: statistics
// cover what was written before them.
type Annotator struct {
	// Lookup finds the correction of a reply. It may wait for it: the
	// tool's own text is already on its way when Lookup is called.
	Lookup func(Reply) Correction
	// As names what is corrected to, for the statistics: "bare-metal", "wire".
	As string
	// Unprinted returns, in us, what was added to each reply of a run that
	// prints statistics but no replies (ping -q, ping -f). Optional.
	Unprinted func(Stats) []float64
	// OnReply and OnStats, if set, are told what was found: with a Stream
	// to nil they make another output, such as JSON, of the run.
	OnReply func(Reply, Correction)
	OnStats func(Stats, Report)

	mu      sync.Mutex
	parser  Parser
	summary Summary
	recall  map[recallKey]Correction // of replies that a Recap may show again
}

type recallKey struct {
	target string
	seq    int
}

// maxRecall bounds the memory for fping -C; beyond it a recap shows "?".
const maxRecall = 1 << 18

// NewAnnotator returns an Annotator for what parser understands.
func NewAnnotator(parser Parser, lookup func(Reply) Correction) *Annotator {
	return &Annotator{Lookup: lookup, parser: parser}
}

// Stream returns the writer for one of the tool's outputs, to be closed at its
// end. It copies what it gets to out, byte by byte, with the annotations added;
// if out is nil, the output is only understood.
func (a *Annotator) Stream(out io.Writer) *Stream { return &Stream{a: a, out: out} }

// Summary is live: it can be read while the tool runs.
func (a *Annotator) Summary() *Summary { return &a.summary }

// Close ends the run, after its streams were closed: statistics that no more
// line can complete are handed to OnStats.
func (a *Annotator) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if st := a.parser.Finish().Stats; st != nil {
		a.report(*st)
	}
}

// line is called with a.mu held for each complete line; its text is with s
// already. ending is how the line ends, empty if the output does.
func (a *Annotator) line(s *Stream, text, ending string) {
	parsed := a.parser.Parse(visible(text))
	if len(parsed.Replies) > 0 {
		s.flush() // Lookup may take its time
		s.put(Annotation(parsed, a.correct(parsed)))
	}
	s.put(ending)
	if parsed.Stats == nil {
		return
	}
	s.flush()
	for _, l := range StatsLines(*parsed.Stats, a.report(*parsed.Stats), a.As) {
		if ending == "" {
			l = "\n" + l
		}
		s.put(l + ending)
	}
}

// correct finds the corrections of a line's replies and counts them.
func (a *Annotator) correct(line Line) []Correction {
	corrections := make([]Correction, len(line.Replies))
	for i, r := range line.Replies {
		key := recallKey{r.Target, r.Seq}
		if line.Recap {
			c, ok := a.recall[key]
			if !ok {
				c = Correction{Status: "not seen before"}
			}
			corrections[i] = c
			continue
		}
		c := a.Lookup(r)
		if c.OK && (!finite(c.AddedUs) || !finite(c.CorrectedUs)) {
			c = Correction{Status: "invalid"}
		}
		corrections[i] = c
		a.summary.Add(r, c)
		if line.AgainLater && len(a.recall) < maxRecall {
			if a.recall == nil {
				a.recall = make(map[recallKey]Correction)
			}
			key.target = strings.Clone(key.target) // rather than the whole line it is part of
			a.recall[key] = c
		}
		if a.OnReply != nil {
			a.OnReply(r, c)
		}
	}
	return corrections
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// report finds what is known about the target of st, and tells OnStats.
func (a *Annotator) report(st Stats) Report {
	r := a.summary.Report(st.Target)
	measured := st.Measured()
	if r.Replies == 0 && st.HasRTT && measured > 0 && a.Unprinted != nil {
		r.Added = Describe(a.Unprinted(st))
		r.Unprinted = true
		r.MeanResolutionUs = math.Inf(1)
	}
	// The mean of differences is the difference of the means, but only over
	// the same replies: all that the tool averaged, and no others.
	same := st.HasRTT && measured > 0 && r.Added.N == measured && (r.Unprinted || r.Replies == measured)
	if same && st.avgResolutionUs < r.MeanResolutionUs {
		r.CorrectedMeanUs, r.MeanResolutionUs = st.AvgUs-r.Added.Mean, st.avgResolutionUs
	}
	if math.IsInf(r.MeanResolutionUs, 0) {
		r.MeanResolutionUs = 0
	}
	if a.OnStats != nil {
		a.OnStats(st, r)
	}
	return r
}
