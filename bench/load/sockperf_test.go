package load

import (
	"strings"
	"testing"
	"time"
)

// What sockperf 3.7-no.git of Debian 12 wrote for
// sockperf ping-pong -i 127.0.0.1 -p 21111 --tcp -t 1 -m 64 --full-rtt --full-log FILE, all but four messages cut out.
const sockperfRTT = "------------------------------\n" +
	"test was performed using the following parameters: --mps=600000 --burst=1 --reply-every=1 --msg-size=64 --time=1 --full-rtt\n" +
	"------------------------------\n" +
	"sockperf: [Total Run] RunTime=1.001 sec; Warm up time=400 msec; SentMessages=14608; ReceivedMessages=14607\n" +
	"sockperf: ========= Printing statistics for Server No: 0\n" +
	"sockperf: [Valid Duration] RunTime=0.550 sec; SentMessages=4; ReceivedMessages=4\n" +
	"sockperf: \x1b[2;35m====> avg-rtt=74.834 (std-dev=21.405)\x1b[0m\n" +
	"sockperf: # dropped messages = 0; # duplicated messages = 0; # out-of-order messages = 0\n" +
	"sockperf: \x1b[2;35mTotal 4 observations\x1b[0m; each percentile contains 0.04 observations\n" +
	"sockperf: ---> <MAX> observation =  913.977\n" +
	"sockperf: ---> percentile 50.000 =   79.417\n" +
	"sockperf: ---> <MIN> observation =   22.523\n" +
	sockperfMessages

const sockperfMessages = "------------------------------\n" +
	"packet, txTime(sec), rxTime(sec), rtt(usec)\n" +
	"0, 2.413677634, 2.413752545, 74.911\n" +
	"1, 2.413752575, 2.413825793, 73.218\n" +
	"2, 2.413825823, 2.413903127, 77.304\n" +
	"3, 2.413903157, 2.413977066, 73.909\n" +
	"------------------------------\n"

// The same run by versions that word it otherwise.
var (
	// Up to 3.6: one wording for both, padded.
	sockperfLat = strings.Replace(sockperfRTT, "avg-rtt=74.834", "avg-lat= 74.834", 1)
	// Without --full-rtt half round trips are printed.
	sockperfHalf = strings.Replace(sockperfRTT, "avg-rtt=74.834", "avg-latency=37.417", 1)
	// Half round trips under the old wording, which does not say so.
	sockperfLatHalf = strings.Replace(sockperfRTT, "avg-rtt=74.834", "avg-lat= 37.417", 1)
)

func TestParseSockperf(t *testing.T) {
	for _, c := range []struct{ name, text, failed string }{
		{"3.7 with --full-rtt", sockperfRTT, ""},
		{"3.6 and before", sockperfLat, ""},
		{"half round trips in disguise", sockperfLatHalf, `check "units: sockperf's average against the mean of its log" failed`},
		{"observations missing", strings.Replace(sockperfRTT, "Total 4", "Total 5", 1), `check "sockperf's number of observations against its log's lines" failed`},
	} {
		t.Run(c.name, func(t *testing.T) {
			log, err := parseSockperf(strings.NewReader(c.text))
			if err != nil {
				t.Fatal(err)
			}
			s := log.sample(Host{})
			if s.Messages != 4 || s.Wall != 299432 || log.sum != 299342 || s.RTT.Max() != 77311 || s.RTT.Min() != 73216 {
				t.Errorf("%d messages in %d ns, sum %d ns, max %d, min %d", s.Messages, s.Wall, log.sum, s.RTT.Max(), s.RTT.Min())
			}
			got := ""
			if err := s.Failed(); err != nil {
				got = err.Error()
			}
			if !strings.HasPrefix(got, c.failed) || c.failed == "" && got != "" {
				t.Errorf("failed check %q, want %q", got, c.failed)
			}
		})
	}
}

// A round in which half round trips are recorded as round trips must not pass, whatever the tool says about itself.
func TestHalfRoundTripsFail(t *testing.T) {
	if c := checkSum(9550*time.Millisecond/2, 9550*time.Millisecond, leastBusy); c.OK {
		t.Errorf("half of the wall time passes: %+v", c)
	}
	if c := checkSum(9530*time.Millisecond, 9550*time.Millisecond, leastBusy); !c.OK {
		t.Errorf("all of the wall time fails: %+v", c)
	}
	if c := checkMost(3*time.Second, 2*time.Second); c.OK {
		t.Errorf("more than the wall time passes: %+v", c)
	}
}

func TestParseSockperfErrors(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "no average (avg-rtt=, avg-latency= or avg-lat=) in it"},
		{"half round trips", sockperfHalf, "its average is of half round trips"},
		{"other wording", strings.Replace(sockperfRTT, "avg-rtt=", "mean round trip ", 1), "words its output in another way"},
		{"no messages", strings.Replace(sockperfRTT, sockperfMessages, "", 1), "no messages in it"},
		{"disk full", strings.TrimSuffix(sockperfRTT, "------------------------------\n"), "it ends in the middle"},
		{"cut in a line", sockperfRTT[:strings.Index(sockperfRTT, ", 73.909")-20], "is no message"},
		{"reply before message", strings.Replace(sockperfRTT, "2.413752545", "2.413677633", 1), "has a reply before its message"},
		{"nothing received", "sockperf: No messages were received from the server. Is the server down?\n", "sockperf says: No messages were received from the server. Is the server down?"},
		{"too short", "sockperf: No valid observations found. Try tune parameters: --time/--mps/--reply-every\n", "sockperf says: No valid observations found"},
		{"no line ends", strings.Repeat("x", 10000), "token too long"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := parseSockperf(strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got error %v, want %q", err, c.want)
			}
		})
	}
}

func TestParseSeconds(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"2.413677634": 2413677634, "0.000000001": 1, "1700000000.123456789": 1700000000123456789, "3": 3e9, "1.5": 1.5e9,
	} {
		if got, err := parseSeconds(text); err != nil || got != want {
			t.Errorf("%q: %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "-1.0", "1.0000000001", "1.-5", "1e3", "99999999999.0", "nan", "1.+5"} {
		if got, err := parseSeconds(text); err == nil {
			t.Errorf("%q is read as %d", text, got)
		}
	}
}

func FuzzParseSockperf(f *testing.F) {
	for _, seed := range []string{sockperfRTT, sockperfLat, sockperfHalf, ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		log, err := parseSockperf(strings.NewReader(text))
		if err != nil {
			return
		}
		if s := log.sample(Host{}); s.Messages == 0 || uint64(s.RTT.TotalCount()) != s.Messages || log.sum < 0 {
			t.Errorf("accepted: %+v", s)
		}
	})
}
