package delays

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"tare/container"
	"tare/lab"
	"tare/mace"
	"tare/subtract"
)

// probe is a tool that makes round trips in container c1.
type probe struct {
	name     string // the protocol's, as mace has it
	protocol string
	v6       bool
}

var probes = []probe{
	{"icmp4", "icmp", false}, {"icmp6", "icmp6", true},
	{"udp4", "udp", false}, {"udp6", "udp", true},
	{"tcp4", "tcp", false}, {"tcp6", "tcp", true},
}

// pace is how often a tool asks. Without a pause it asks when the last answer has come.
type pace struct {
	requests int
	pause    time.Duration
}

// argv is the tool's: ping, or this binary's own client.
func (p probe) argv(pace pace, remote netip.AddrPort) []string {
	if p.protocol != "udp" && p.protocol != "tcp" {
		rate := []string{"-A"}
		if pace.pause > 0 {
			rate = []string{"-i", strconv.FormatFloat(pace.pause.Seconds(), 'f', 4, 64)}
		}
		return append(append([]string{"ping", "-n", "-W", "5", "-c", strconv.Itoa(pace.requests)}, rate...), remote.Addr().String())
	}
	self, err := os.Executable()
	if err != nil {
		panic(err) // Linux has /proc/self/exe
	}
	return []string{self, clientName, p.protocol, remote.String(), strconv.Itoa(pace.requests), pace.pause.String()}
}

// trip is a round trip, in us.
type trip struct{ gross, added, corrected float64 }

// trips are round trips by the name of their probe.
type trips map[string][]trip

func (b *bed) options(as string) (subtract.Options, error) {
	path, err := mace.ParsePath(as)
	if err != nil {
		return subtract.Options{}, err
	}
	target, err := container.FromNetNS(b.lab.NetNSPath(lab.Container(1)))
	return subtract.Options{Target: target, Path: path}, err
}

func (b *bed) remote(p probe) netip.AddrPort {
	if p.v6 {
		return netip.AddrPortFrom(b.lab.RemoteAddr6(), b.server.Port)
	}
	return netip.AddrPortFrom(b.lab.RemoteAddr4(), b.server.Port)
}

// watch runs every tool once while a session watches the container. A gross RTT is what the kernel saw between the
// path's inner ends.
func (b *bed) watch(ctx context.Context, as string, pace pace) (trips, error) {
	options, err := b.options(as)
	if err != nil {
		return nil, err
	}
	found := trips{}
	correlator := mace.NewCorrelator(func(r *mace.RTT) {
		flow, _ := r.Probe()
		for _, p := range probes {
			if r.Status == mace.Matched && flow.ProtocolName() == p.protocol && flow.Dst.Is6() == p.v6 {
				us := func(ns int64) float64 { return float64(ns) / 1e3 }
				found[p.name] = append(found[p.name], trip{us(r.GrossNS()), us(r.TareNS()), us(r.NetNS())})
			}
		}
	})
	session, err := subtract.Open(ctx, options, correlator.Add)
	if err != nil {
		return nil, err
	}
	defer session.Close()
	for _, p := range probes {
		cmd := b.lab.Command(ctx, lab.Container(1), p.argv(pace, b.remote(p))...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%v: %w: %s", cmd.Args, err, out)
		}
	}
	if err := session.Finish(); err != nil {
		return nil, err
	}
	audit, err := session.Audit()
	if err != nil {
		return nil, err
	}
	for _, p := range probes {
		if err := enough(len(found[p.name]), pace, audit); err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return found, nil
}

// enough makes sure that most round trips were corrected. Some may be missing where a kernel keeps packets from the
// programs; medians do not mind, and how many are missing is another test's affair.
func enough(n int, pace pace, audit subtract.Audit) error {
	if least := pace.requests * 3 / 4; n < least {
		return fmt.Errorf("%d of %d round trips were corrected; audit %+v", n, pace.requests, audit)
	}
	return nil
}

// read runs ping as `tare run --as AS -o json -- ping` does. A gross RTT is what ping prints.
func (b *bed) read(ctx context.Context, as string, pace pace) (trips, error) {
	options, err := b.options(as)
	if err != nil {
		return nil, err
	}
	found := trips{}
	for _, p := range probes[:2] {
		var out, errs bytes.Buffer
		err = subtract.Run(ctx, subtract.RunOptions{Options: options, Argv: p.argv(pace, b.remote(p)), As: as, JSON: true,
			Stdout: &out, Stderr: &errs})
		if err != nil {
			return nil, fmt.Errorf("%s: %w: %s", p.name, err, errs.Bytes())
		}
		summary, err := subtract.ReadSummary(bytes.NewReader(out.Bytes()))
		if err != nil {
			return nil, err
		}
		for decoder := json.NewDecoder(&out); ; {
			var line struct {
				RTT       any      `json:"rtt_us"` // in the summary it is a distribution
				Corrected *float64 `json:"corrected_us"`
				Type      string
			}
			err := decoder.Decode(&line)
			if errors.Is(err, io.EOF) || line.Type == "summary" {
				break
			}
			if err != nil {
				return nil, err
			}
			if gross, ok := line.RTT.(float64); ok && line.Corrected != nil {
				found[p.name] = append(found[p.name], trip{gross, gross - *line.Corrected, *line.Corrected})
			}
		}
		if err := enough(len(found[p.name]), pace, summary.Audit); err != nil {
			return nil, fmt.Errorf("%s: %w; by status %v", p.name, err, summary.Status)
		}
	}
	return found, nil
}

// median is that of each column.
func median(all []trip) trip {
	column := func(of func(trip) float64) float64 {
		var values []float64
		for _, one := range all {
			values = append(values, of(one))
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	return trip{column(func(t trip) float64 { return t.gross }), column(func(t trip) float64 { return t.added }),
		column(func(t trip) float64 { return t.corrected })}
}

func (m trip) String() string {
	return fmt.Sprintf("gross %.0f, added %.0f, corrected %.0f us", m.gross, m.added, m.corrected)
}

// measure is read or watch.
func (b *bed) measure(t *testing.T, s scenario) (trips, error) {
	t.Helper()
	if s.printed {
		return b.read(t.Context(), s.as, s.pace)
	}
	return b.watch(t.Context(), s.as, s.pace)
}
