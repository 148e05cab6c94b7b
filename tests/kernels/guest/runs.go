package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"tare/lab"
	"tare/mace"
	"tare/subtract"
	"tare/tests/kernels/console"
)

// pings of each run, fast enough for twenty runs in a minute.
const pings = 20

// checkRuns runs tools by `tare run` in each of the lab's networks.
func checkRuns(r *report) {
	for _, network := range lab.Networks {
		name := string(network)
		var l *lab.Lab
		r.check("lab: "+name, func() (err error) {
			if _, err := output(console.Tare, "lab", "up", "--name", name, "--network", name, "--containers", "3"); err != nil {
				return err
			}
			l, err = lab.Open(name)
			return err
		})
		if l == nil {
			continue
		}
		checkNetwork(r, l)
		r.check("lab: "+name+" down", func() error {
			_, err := output(console.Tare, "lab", "down", "--name", name)
			return err
		})
	}
}

func checkNetwork(r *report, l *lab.Lab) {
	to4, to6 := l.RemoteAddr4().String(), l.RemoteAddr6().String()
	corrected := func(path string, expected int, argv ...string) {
		name := fmt.Sprintf("run: %s, %s, %s", l.Name(), path, strings.Join(argv, " "))
		r.check(name, func() error { return allCorrected(l, path, expected, argv) })
	}
	ping := func(path, to string) {
		corrected(path, pings, "ping", "-c", strconv.Itoa(pings), "-i", "0.02", to)
	}
	if l.Options().Network != lab.NetworkBridge {
		ping("bare-metal", to4)
		ping("bare-metal", to6)
		return
	}
	for _, path := range mace.PathNames() {
		ping(path, to4)
	}
	ping("bare-metal", to6)
	corrected("wire", pings, "fping", "-c", strconv.Itoa(pings), "-p", "20", to4)
	// Of the first hop, the bridge, nothing can be corrected: its answers come from this side of the NIC.
	corrected("bare-metal", 6, "traceroute", "-n", "-q", "3", "-f", "2", "-m", "3", to4)
}

// allCorrected runs a tool in a container. All replies must have been corrected, and all packets seen.
func allCorrected(l *lab.Lab, path string, expected int, argv []string) error {
	argv = append([]string{console.Tare, "run", "--netns", l.NetNSName(lab.Container(1)), "--path", path, "-o", "json", "--"}, argv...)
	text, err := output(argv...)
	if err != nil {
		return err
	}
	s, err := subtract.ReadSummary(strings.NewReader(text))
	if err != nil {
		return fmt.Errorf("%w\n%s", err, text)
	}
	var wrong []string
	demand := func(ok bool, format string, args ...any) {
		if !ok {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	demand(s.Received == expected, "%d replies, want %d", s.Received, expected)
	demand(s.Matched == s.Received && s.Coverage == 1, "%d of %d replies corrected", s.Matched, s.Received)
	demand(s.Audit.Seen == s.Audit.DevicePackets, "%d packets seen, and the devices count %d", s.Audit.Seen, s.Audit.DevicePackets)
	demand(s.Audit.Seen >= uint64(expected), "%d packets are too few", s.Audit.Seen)
	demand(s.Dropped == 0, "%d records dropped", s.Dropped)
	if wrong == nil {
		return nil
	}
	return errors.New(strings.Join(wrong, "; ") + "\n" + text)
}
