package eval

// What the sources say, for comparison. Paper: C. Misa, S. Kannan, R. Durairajan, "Can We Containerize Internet Measurements?",
// ANRW 2019, by its text (its figures give no numbers). Poster: C. Misa, R. Durairajan, "Dynamic Measurement of Container
// Network Latency with MACE", Fig. 5. Their hosts were bare metal with a network between them, so RTTs are to be
// compared by what is added, not by what they are.
const (
	paperPayload      = "no effect of size" // section 4.2
	paperError        = "within 20 us"      // section 4.3
	paperErrorUs      = 20.0
	paperCoverage     = "95-100%" // section 4.3, Fig. 4
	paperCoveragePct  = 95.0
	paperPerturbation = 20.0 // us, in containers: "for the most part below", section 4.4
)

// paperPoster has, by row, mean, mode and deviation in us.
var paperPoster = map[string]string{
	"native, original":                 "169.253, 156.5, 65.338",
	"native, at the NIC":               "118.793, 119.6, 21.620 (hardware)",
	"native, no SO_TIMESTAMP":          "197.716, 185.5, 63.431",
	"container, raw":                   "275.639, 231.5, 110.418",
	"container, adjusted by inner-dev": "205.400, 177.5, 86.545",
	"container, adjusted by max-dev":   "204.042, 173.5, 91.751",
	"container, adjusted by syscalls":  "161.107, 132.5, 82.758",
}
