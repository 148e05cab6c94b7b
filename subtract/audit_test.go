package subtract

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"tare/container"
	"tare/lab"
	"tare/mace"
	"tare/mace/macetest"
)

func TestMain(m *testing.M) {
	macetest.Main()
	os.Exit(m.Run())
}

func TestParseCounts(t *testing.T) {
	const (
		snmp = `Ip: Forwarding DefaultTTL InReceives InHdrErrors InAddrErrors
Ip: 1 64 250 0 0
Icmp: InMsgs InErrors
Icmp: 7 0
`
		snmp6 = "Ip6InReceives                   \t30\nIp6InHdrErrors                  \t0\n"
		dev   = `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:    8000      80    0    0    0     0          0         0     8000      80    0    0    0     0       0          0
  eth0:   20100     201    0    0    0     0          0         0    30200     302    0    0    0     0       0          0
eth1:1000 10 0 0 0 0 0 0 2000 20 0 0 0 0 0 0
`
	)
	for _, tt := range []struct {
		name             string
		snmp, snmp6, dev string
		want             independent
		fails            string
	}{
		{"both protocols", snmp, snmp6, dev, independent{tx: 322, rx: 211, ip: 200}, ""},
		{"no IPv6", snmp, "", dev, independent{tx: 322, rx: 211, ip: 170}, ""},
		{"no devices", snmp, snmp6, "", independent{ip: 280}, ""},
		{"not a number", "Ip: A\nIp: 1 64 x\n", snmp6, dev, independent{}, "no InReceives"},
		{"a device without counts", snmp, snmp6, "eth0: 1 2\n", independent{}, "reading a device's counts"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseCounts(tt.snmp, tt.snmp6, tt.dev)
			if tt.fails == "" && (err != nil || got != tt.want) {
				t.Errorf("%+v, %v, want %+v", got, err, tt.want)
			}
			if tt.fails != "" && (err == nil || !strings.Contains(err.Error(), tt.fails)) {
				t.Errorf("error %v, want %q in it", err, tt.fails)
			}
		})
	}
}

// What may be traffic in the instant of a reading is not missing; what is more than that is; and segments count as
// packets where the device counts them so.
func TestMissing(t *testing.T) {
	at := func(p place, low, high int64, extra uint64) reading {
		r := reading{offsets: make([]offset, firstNIC), extra: make([]uint64, firstNIC)}
		r.offsets[p], r.extra[p] = offset{low, high}, extra
		return r
	}
	for _, tt := range []struct {
		name         string
		p            place
		segmentedOut bool
		from, to     reading
		want         offset
	}{
		{"at rest", containerIn, false, at(containerIn, 5, 5, 0), at(containerIn, 5, 5, 0), offset{0, 0}},
		{"some", containerIn, false, at(containerIn, 5, 5, 0), at(containerIn, 12, 12, 0), offset{7, 7}},
		{"within the readings", containerIn, false, at(containerIn, 5, 9, 0), at(containerIn, 3, 12, 0), offset{-6, 7}},
		{"more than that", containerIn, false, at(containerIn, 5, 9, 0), at(containerIn, 13, 20, 0), offset{4, 15}},
		{"merged", containerIn, false, at(containerIn, 0, 0, 10), at(containerIn, 40, 40, 50), offset{0, 40}},
		{"segmented behind the event", containerOut, true, at(containerOut, 0, 0, 0), at(containerOut, 50, 50, 40), offset{10, 50}},
		{"segmented before it", containerOut, false, at(containerOut, 0, 0, 0), at(containerOut, 50, 50, 40), offset{50, 50}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := auditor{counter: &counter{segmentedOut: tt.segmentedOut}}
			if got := a.missing(tt.p, tt.from, tt.to); got != tt.want {
				t.Errorf("%+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestWindowsJoin(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	var a auditor
	for _, w := range []AuditWindow{
		{at(0), at(1), "container", ingress, 1}, {at(0), at(1), "nic0", ingress, 2}, {at(1), at(2), "container", ingress, 4},
		{at(5), at(6), "container", ingress, 8},
	} {
		a.note(w)
	}
	got := fmt.Sprint(a.windows)
	if want := fmt.Sprint([]AuditWindow{
		{at(0), at(2), "container", ingress, 5}, {at(0), at(1), "nic0", ingress, 2}, {at(5), at(6), "container", ingress, 8},
	}); got != want {
		t.Errorf("%v, want %v", got, want)
	}
}

// blindLab is a lab in which packets are handled on top of any process, and a process on top of which programs do
// nothing: a kernel that keeps packets from programs.
func blindLab(t *testing.T) (RunOptions, *lab.Lab) {
	t.Helper()
	l, err := lab.Up(t.Context(), lab.Options{Name: fmt.Sprintf("audit-test-%d", os.Getpid()), RPS: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Down(); err != nil {
			t.Error(err)
		}
	})
	spinner, err := macetest.StartSpinner(time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(spinner.Stop)
	target, err := container.FromNetNS(l.NetNSPath(lab.Container(1)))
	if err != nil {
		t.Fatal(err)
	}
	path, err := mace.ParsePath("bare-metal")
	if err != nil {
		t.Fatal(err)
	}
	return RunOptions{Options: Options{Target: target, Path: path, BlindPID: spinner.PID()}, As: "bare-metal"}, l
}

// Packets that the kernel keeps from the programs are told of: how many, where and when; in text, in the summary, and at
// each reply. And none of them passes for one that the network has lost.
func TestBlindness(t *testing.T) {
	options, l := blindLab(t)
	run := func(t *testing.T, json bool, argv ...string) (stdout, stderr string) {
		t.Helper()
		var out, errs bytes.Buffer
		options.Argv, options.JSON, options.Stdout, options.Stderr = argv, json, &out, &errs
		if err := Run(t.Context(), options); err != nil && !errors.As(err, new(ToolError)) {
			t.Fatal(err)
		}
		return out.String(), errs.String()
	}
	ping := []string{"ping", "-i", "0.005", "-c", "200", "-W", "2", l.RemoteAddr4().String()}

	t.Run("json", func(t *testing.T) {
		stdout, _ := run(t, true, ping...)
		summary, err := ReadSummary(strings.NewReader(stdout))
		if err != nil {
			t.Fatal(err)
		}
		audit := summary.Audit
		if audit.Missing() == 0 || audit.Seen >= audit.DevicePackets || len(audit.Incomplete) == 0 {
			t.Fatalf("nothing went unseen, by the audit: %+v", audit)
		}
		total, windows, lossy := uint64(0), uint64(0), map[string]uint64{}
		for _, c := range audit.Counts {
			if c.By != "devices" || c.Loose || c.Counted < c.Seen || c.Missing != c.Counted-c.Seen {
				t.Errorf("at rest, and without GSO, a comparison is exact: %+v", c)
			}
			lossy[c.Where+" "+c.Direction] = c.Missing
			total += c.Missing
		}
		for _, w := range audit.Incomplete {
			if windows += w.Missing; !w.From.Before(w.To) || w.Missing == 0 {
				t.Errorf("no window: %+v", w)
			}
		}
		if len(audit.Counts) != 4 || total != audit.Missing() || windows > total {
			t.Errorf("%d missing in sum, %d in windows: %+v", total, windows, audit)
		}
		// ping itself has sent them, on top of no other process; of its neighbours' sort there are a few.
		if lossy["container egress"] > 10 {
			t.Errorf("by place: %v", lossy)
		}
		// ping has got them all, so what is not matched was not lost.
		unmatched := summary.Received - summary.Matched
		if summary.Received != 200 || uint64(unmatched) > total {
			t.Errorf("%d received, %d unmatched, and %d missing: %+v", summary.Received, unmatched, total, summary.Status)
		}
		flagged := 0
		for line := range strings.Lines(stdout) {
			if strings.Contains(line, `"type":"rtt"`) && strings.Contains(line, `"incomplete":true`) {
				flagged++
			}
		}
		if flagged == 0 {
			t.Errorf("no reply is flagged, and %d packets went unseen", total)
		}
	})
	t.Run("text", func(t *testing.T) {
		_, stderr := run(t, false, ping...)
		for _, want := range []string{
			"gress at nic0: its devices counted ", " went unseen\n", "\ntare: audit: incomplete windows: ", "\ntare: audit: this kernel kept programs from running; the network has not lost ",
		} {
			if !strings.Contains("\n"+stderr, want) {
				t.Errorf("no %q in\n%s", want, stderr)
			}
		}
	})
	t.Run("watch", func(t *testing.T) {
		session, err := Open(t.Context(), options.Options, func(*mace.Passage) {})
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		if out, err := l.Command(t.Context(), lab.Container(1), ping...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if err := session.Finish(); err != nil {
			t.Fatal(err)
		}
		var account bytes.Buffer
		if err := session.WriteAccount(&account); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(account.String(), "gress at nic0: its devices counted ") {
			t.Errorf("the account is\n%s", &account)
		}
	})
}

// Segmentation and merging make the devices' counts and the programs' differ, and none of that passes for packets that
// went unseen. This kernel may keep some from the programs, in one attempt or another; a false alarm is there in each.
func TestNoFalseAlarm(t *testing.T) {
	for i, tt := range []struct {
		name    string
		options lab.Options
	}{
		{"segmented at the container", lab.Options{ContainerOffloads: lab.Offloads{TSO: lab.Off, GSO: lab.Off}}},
		{"segmented at the NIC", lab.Options{NICOffloads: lab.Offloads{TSO: lab.Off}}},
		{"segmented nowhere", lab.Options{}},
		{"merged", lab.Options{NICOffloads: lab.Offloads{GRO: lab.On}, ContainerOffloads: lab.Offloads{GRO: lab.On},
			RemoteOffloads: lab.Offloads{TSO: lab.Off, GSO: lab.Off}}},
		{"macvlan", lab.Options{Network: lab.NetworkMacvlan}},
		{"vxlan", lab.Options{Network: lab.NetworkVXLAN}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.options.Name = fmt.Sprintf("alarm-test-%d-%d", os.Getpid(), i)
			l, err := lab.Up(t.Context(), tt.options)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Down()
			server, err := macetest.StartEcho(l, lab.Remote)
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			for _, path := range []string{"bare-metal", "inner-dev"} {
				const attempts = 4
				var audit Audit
				for range attempts {
					if audit = auditOfStream(t, l, server.Port, path); audit.Missing() == 0 {
						break
					}
				}
				if audit.Missing() > 0 || audit.Seen == 0 {
					t.Errorf("%s: %+v", path, audit)
				}
			}
		})
	}
}

// auditOfStream is that of a session during which a container sends and receives 4 MB by TCP.
func auditOfStream(t *testing.T, l *lab.Lab, port uint16, path string) Audit {
	t.Helper()
	target, err := container.FromNetNS(l.NetNSPath(lab.Container(1)))
	if err != nil {
		t.Fatal(err)
	}
	options := Options{Target: target}
	if options.Path, err = mace.ParsePath(path); err != nil {
		t.Fatal(err)
	}
	session, err := Open(t.Context(), options, func(*mace.Passage) {})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	c := macetest.Client{Protocol: "tcp", Remote: netip.AddrPortFrom(l.RemoteAddr4(), port), Requests: 64, Size: 64000}
	client, err := macetest.Start(t.Context(), l, lab.Container(1), c)
	if err == nil {
		_, err = client.Finish()
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := session.Finish(); err != nil {
		t.Fatal(err)
	}
	audit, err := session.Audit()
	if err != nil {
		t.Fatal(err)
	}
	return audit
}
