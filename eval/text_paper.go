package eval

import "fmt"

func (p *Payload) write(t *text) {
	t.section("Payload (Fig. 2): mean RTT of a flood ping in a container less that on the host, runs of %d replies", p.RepliesPerRun)
	rows := [][]string{{"payload", "container less host", "host less host", "paper"}}
	for _, s := range p.Sizes {
		rows = append(rows, []string{fmt.Sprintf("%d B", s.Bytes), s.DifferenceUs.String(), s.NoiseUs.String(), paperPayload})
	}
	t.table(rows)
}

func (l *Load) write(t *text) {
	t.section("Load (Fig. 3 and 4): error of a flood ping's RTT against a tap on the NIC, means of runs of %d replies of %d B", l.RepliesPerRun, l.PayloadBytes)
	rows := [][]string{{"floods", "", "as printed", "corrected", "corrected, medians", "coverage", "paper: corrected, coverage"}}
	for _, level := range l.Levels {
		for i, a := range level.Arms {
			row := []string{"", a.Arm, a.RawErrorUs.String(), a.ErrorUs.String(), a.MedianErrorUs.String(), a.Coverage.String(), ""}
			if i == 0 {
				row[0] = fmt.Sprint(level.Floods)
			}
			if a.Arm == armContainer {
				row[6] = paperError + ", " + paperCoverage
			}
			rows = append(rows, row)
		}
	}
	t.table(rows)
}

func (p *Poster) write(t *text) {
	t.section("Poster: RTTs at rest by method, runs of %d replies; the paper's machines were others, with a network between them", p.RepliesPerRun)
	rows := [][]string{{"", "mean", "mode", "deviation", "poster: mean, mode, deviation"}}
	for _, m := range p.Methods {
		rows = append(rows, []string{m.Method, m.MeanUs.String(), m.ModeUs.String(), m.DeviationUs.String(), paperPoster[m.Method]})
	}
	t.table(rows)
	if n := len(p.Series); n > 0 {
		t.line("  time series beside %.0f Mbit/s: %d replies, in the JSON form and in the figure", p.SeriesMbits, n)
	}
}
