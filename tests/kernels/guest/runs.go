package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
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
	note := ""
	corrected := func(path string, expected int, argv ...string) {
		name := fmt.Sprintf("run: %s, %s, %s%s", l.Name(), path, strings.Join(argv, " "), note)
		r.check(name, func() error { return allCorrected(l, path, expected, argv) })
	}
	ping := func(path, to string) {
		corrected(path, pings, "ping", "-c", strconv.Itoa(pings), "-i", "0.02", to)
	}
	switch l.Options().Network {
	case lab.NetworkVXLAN:
		ping("max-dev", to6)
	case lab.NetworkMacvlan:
		ping("bare-metal", to4)
	default:
		for i, path := range mace.PathNames() {
			ping(path, []string{to4, to6}[i%2])
		}
		corrected("bare-metal", pings, "fping", "-c", strconv.Itoa(pings), "-p", "20", "-t", "5000", to4)
		// Not from the first hop on: that is the bridge, whose answers come from this side of the NIC.
		corrected("max-dev", 3, "traceroute", "-n", "-q", "3", "-f", "2", to4)
		note = ", beside traffic"
		beside(r, l, func() { ping("inner-dev", to4) })
	}
}

// beside runs a check while the other containers talk to each other, so that buffers are soon used again.
func beside(r *report, l *lab.Lab, check func()) {
	load := exec.Command(console.Tare, "lab", "load", "--name", l.Name(), "--local-icmp", "--for", "1m")
	stdout, err := load.StdoutPipe()
	if err == nil {
		err = load.Start()
	}
	if err == nil {
		_, err = bufio.NewReader(stdout).ReadString('\n') // it says so when all of it runs
	}
	if err != nil {
		r.check("lab: load", func() error { return err })
		return
	}
	check()
	_ = load.Process.Signal(os.Interrupt)
	_ = load.Wait()
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
