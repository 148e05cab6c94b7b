package tool

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// addedDecimals shows what the network added to 0.1 us: it is often less than
// the last digit of ping.
const addedDecimals = 4

// ms renders microseconds in the unit of all these tools.
func ms(us float64, decimals int) string {
	s := strconv.FormatFloat(us/1000, 'f', decimals, 64)
	if strings.Trim(s, "-0.") == "" {
		s = strings.TrimPrefix(s, "-")
	}
	return s
}

// correctedDecimals is one digit more than the tool printed: the difference
// from its RTT shows, and no precision is claimed that its RTT never had.
func correctedDecimals(resolutionUs float64) int {
	if resolutionUs <= 0 {
		return addedDecimals
	}
	return max(0, min(9, 4-int(math.Round(math.Log10(resolutionUs)))))
}

// Annotation is what to append to a line, given the correction of each of its
// replies. It is empty for a line without replies.
func Annotation(line Line, corrections []Correction) string {
	if len(line.Replies) == 0 || len(corrections) != len(line.Replies) {
		return ""
	}
	if len(line.Columns) > 0 {
		return columns(line, corrections)
	}
	c := corrections[0]
	if !c.OK {
		return "  added=?" + inParentheses(c.Status)
	}
	return "  added=" + ms(c.AddedUs, addedDecimals) + " ms  corrected=" +
		ms(c.CorrectedUs, correctedDecimals(line.Replies[0].ResolutionUs)) + " ms"
}

func inParentheses(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}

// columns renders "  added 0.0061 ? * ms  corrected 0.0389 ? * ms (unfinished)".
func columns(line Line, corrections []Correction) string {
	var added, corrected strings.Builder
	var statuses []string
	any := false
	for _, i := range line.Columns {
		a, c := line.NoAnswer, line.NoAnswer
		if i >= 0 {
			a, c = "?", "?"
			if correction := corrections[i]; correction.OK {
				any = true
				a = ms(correction.AddedUs, addedDecimals)
				c = ms(correction.CorrectedUs, correctedDecimals(line.Replies[i].ResolutionUs))
			} else if s := correction.Status; s != "" && len(statuses) < 8 && !slices.Contains(statuses, s) {
				statuses = append(statuses, s)
			}
		}
		added.WriteString(" " + a)
		corrected.WriteString(" " + c)
	}
	why := inParentheses(strings.Join(statuses, ", "))
	if !any {
		return "  added" + added.String() + why
	}
	return "  added" + added.String() + " ms  corrected" + corrected.String() + " ms" + why
}

// StatsLines are the lines to put after the tool's own statistics. as says
// what was corrected to ("bare-metal", "wire").
func StatsLines(st Stats, r Report, as string) []string {
	if !st.HasRTT {
		return nil
	}
	names := "min/avg/max"
	if st.HasMdev {
		names += "/mdev"
	}
	values := func(d Dist, decimals int, mean string) string {
		s := ms(d.Min, decimals) + "/" + mean + "/" + ms(d.Max, decimals)
		if st.HasMdev {
			s += "/" + ms(d.Stddev, decimals)
		}
		return s
	}
	total := max(st.Measured(), r.Replies)
	if r.Added.N == 0 {
		return []string{fmt.Sprintf("%sadded %s = ?  (%s)", st.prefix, names, coverage(r, total, ""))}
	}
	mean := ms(r.CorrectedMeanUs, correctedDecimals(r.MeanResolutionUs))
	lines := []string{fmt.Sprintf("%sadded %s = %s ms", st.prefix, names,
		values(r.Added, addedDecimals, ms(r.Added.Mean, addedDecimals)))}
	switch {
	case !r.Unprinted:
		return append(lines, fmt.Sprintf("%scorrected %s = %s ms  (%s)", st.prefix, names,
			values(r.CorrectedRTT, correctedDecimals(r.ResolutionUs), mean), coverage(r, total, as)))
	case r.Added.N == total:
		return append(lines, fmt.Sprintf("%scorrected avg = %s ms  (by the mean of %d of %d replies, none printed%s)",
			st.prefix, mean, r.Added.N, total, asWhat(as)))
	default:
		return append(lines, fmt.Sprintf("%scorrected avg = ?  (%d of %d replies measured, none printed)",
			st.prefix, r.Added.N, total))
	}
}

// coverage renders "3 of 6 replies corrected, as bare-metal; 2 unfinished, 1
// not printed": every reply in the tool's statistics is accounted for.
func coverage(r Report, total int, as string) string {
	s := fmt.Sprintf("%d of %d replies corrected%s", r.Corrected, total, asWhat(as))
	var rest []string
	for _, status := range slices.Sorted(maps.Keys(r.Uncorrected)) {
		name := status
		if name == "" {
			name = "not correctable"
		}
		rest = append(rest, fmt.Sprintf("%d %s", r.Uncorrected[status], name))
	}
	if total > r.Replies {
		rest = append(rest, fmt.Sprintf("%d not printed", total-r.Replies))
	}
	if len(rest) > 0 {
		s += "; " + strings.Join(rest, ", ")
	}
	return s
}

func asWhat(as string) string {
	if as == "" {
		return ""
	}
	return ", as " + as
}
