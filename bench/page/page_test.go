package page

import (
	"bytes"
	"encoding/xml"
	"io"
	"strings"
	"testing"

	"tare/bench/load"
	"tare/bench/report"
	"tare/bench/report/reporttest"
)

func write(t *testing.T, r *report.Report) string {
	t.Helper()
	var out bytes.Buffer
	if err := Write(&out, r); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestWrite(t *testing.T) {
	r := reporttest.New(1, 10, reporttest.Arm{Name: "bridge", RTTUs: 22}, reporttest.Arm{Name: "<script>alert(1)</script>", RTTUs: 21})
	r.Partial = "interrupted"
	html := write(t, r)
	for _, want := range []string{
		"<b>bridge</b>: slower than loopback: &#43;", "Partial report", "interrupted", "Docker is not installed", "Testium 9000",
		"All round trips", "Over time", "More than loopback", "sockperf, version 3.7", "full round trips (RTT)",
	} {
		if !strings.Contains(html, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if strings.Count(html, "<svg") != 3 || strings.Count(html, "</svg>") != 3 {
		t.Errorf("%d figures", strings.Count(html, "<svg"))
	}
	// Self-contained, and what a foreign report says is never code.
	for _, never := range []string{"<script", "src=", "@import", "url(", "href="} {
		if strings.Contains(html, never) && !(never == "href=" && !strings.Contains(html, `href="http`)) {
			t.Errorf("the page has %q", never)
		}
	}
	verdicts := strings.Index(html, "slower than")
	if figure := strings.Index(html, "<svg"); verdicts < 0 || verdicts > figure {
		t.Error("the verdict is not on top")
	}
	checkFigures(t, html)
}

// checkFigures has a parser read what is drawn.
func checkFigures(t *testing.T, html string) {
	t.Helper()
	for _, rest := range strings.Split(html, "<svg")[1:] {
		svg, _, _ := strings.Cut("<svg"+rest, "</svg>")
		decoder := xml.NewDecoder(strings.NewReader(svg + "</svg>"))
		for {
			if _, err := decoder.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Errorf("a figure is no XML: %v", err)
				break
			}
		}
	}
}

func TestWriteOtherReports(t *testing.T) {
	rates := reporttest.New(1, 8, reporttest.Arm{Name: "bridge", RTTUs: 22})
	rates.Experiments[0].Unit = load.BytesPerSecond
	for i := range rates.Experiments[0].Rounds {
		for k := range rates.Experiments[0].Rounds[i].Runs {
			rates.Experiments[0].Rounds[i].Runs[k].BytesPerSecond = 2e9 + float64(k*i)
		}
	}
	rates.Analyse()
	single := reporttest.New(2, 1, reporttest.Arm{Name: "docker", RTTUs: 22})
	single.Experiments[0].Style = report.SingleRun
	failed := reporttest.New(3, 2, reporttest.Arm{Name: "docker", RTTUs: 22})
	for i := range failed.Experiments[0].Rounds {
		for k := range failed.Experiments[0].Rounds[i].Runs {
			failed.Experiments[0].Rounds[i].Runs[k].Failed = "units"
		}
	}
	failed.Analyse()
	for name, tt := range map[string]struct {
		r       *report.Report
		figures int
		says    string
	}{
		"rates":          {rates, 2, "bytes per second"},
		"single run":     {single, 1, "one run of each arm"},
		"nothing counts": {failed, 0, "runs do not count"},
		"no experiment":  {&report.Report{}, 0, "How to read this"},
	} {
		t.Run(name, func(t *testing.T) {
			html := write(t, tt.r)
			if n := strings.Count(html, "<svg"); n != tt.figures || !strings.Contains(html, tt.says) {
				t.Errorf("%d figures, want %d and %q", n, tt.figures, tt.says)
			}
			checkFigures(t, html)
		})
	}
}
