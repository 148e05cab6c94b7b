package eval

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"tare/lab"
	"tare/mace"
	"tare/stats"
	"tare/tool"
)

// place is where ping runs: in the measured container, or natively on the host. There the same programs watch the host's
// own namespace, whose device is the NIC itself.
type place struct{ name, host string }

func places() (native, contained place) {
	return place{"native", lab.Host}, place{"container", lab.Container(1)}
}

// refereed is one run of ping: its replies that were corrected and that the tap on the NIC saw, too, in us.
type refereed struct {
	Raw, Corrected, Tap []float64
	Received, Matched   int
}

func (r *refereed) rawErrors() []float64 { return stats.Differences(r.Raw, r.Tap) }
func (r *refereed) errors() []float64    { return stats.Differences(r.Corrected, r.Tap) }

// refereed runs ping in a place, corrects each reply by the engine's path, and pairs it with the tap's by its number. The engine is
// used directly: `tare run` refuses the host itself, where for a user nothing is to be corrected.
func (b *bed) refereed(ctx context.Context, engine *mace.Engine, at place, argv []string, ipBytes int) (refereed, error) {
	var result refereed
	tap, err := openTap(b.lab, b.nic.Index, ipBytes)
	if err != nil {
		return result, err
	}
	defer tap.close()
	added := newAddedTimes(engine.Path())
	watch, err := b.watchBy(engine, []string{at.host}, drainEvery, func(_ int, r *mace.Record) {
		// The floods' packets pass the host's namespace, too. Theirs have another length, and looking at each any closer
		// would take longer than the next takes to come.
		if r.Kind == mace.Delivery || int(r.Len) == ipBytes {
			added.record(r)
		}
	})
	if err != nil {
		return result, err
	}
	defer watch.close()
	replies, err := repliesOf(ctx, b.lab, at.host, argv)
	if err != nil {
		return result, err
	}
	if err := watch.finish(); err != nil {
		return result, err
	}
	trips, err := tap.trips()
	if err != nil {
		return result, err
	}
	tapUs := map[int]float64{}
	for _, trip := range trips {
		tapUs[int(trip.Seq)] = trip.RTTUs()
	}
	for _, reply := range replies {
		result.Received++
		addedUs, ok := added.of(reply.Seq)
		if !ok {
			continue
		}
		result.Matched++
		if at, ok := tapUs[reply.Seq]; ok {
			result.Raw = append(result.Raw, reply.RTTUs)
			result.Corrected = append(result.Corrected, reply.RTTUs-addedUs)
			result.Tap = append(result.Tap, at)
		}
	}
	if len(result.Tap) == 0 {
		return result, fmt.Errorf("no corrected reply of %s in %s is among those that the tap saw", strings.Join(argv, " "), at.host)
	}
	return result, nil
}

// openPath opens an engine for runs that refereed compares: its ring has room for what passes the host's namespace.
func (b *bed) openPath(name string) (*mace.Engine, error) {
	path, err := mace.ParsePath(name)
	if err != nil {
		return nil, err
	}
	return b.openEngine(mace.Options{Path: path, RingBytes: 64 << 20})
}

// addedTimes is what a path takes of each echo round trip of the only ping with this length of packet.
type addedTimes struct {
	mu     sync.Mutex
	joiner *mace.Joiner
	bySeq  map[uint16]float64 // us
}

func newAddedTimes(path mace.Path) *addedTimes {
	a := &addedTimes{bySeq: map[uint16]float64{}}
	correlator := mace.NewCorrelator(func(r *mace.RTT) {
		// A flood of other containers passes the host's namespace, too: only what a process there has sent counts.
		if r.Status == mace.Matched && r.Request.EchoRequest() && r.Request.PID != 0 {
			a.bySeq[uint16(r.Request.Seq)] = float64(r.TareNS()) / 1e3
		}
	})
	a.joiner = mace.NewJoiner(path, correlator.Add)
	return a
}

func (a *addedTimes) record(r *mace.Record) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.joiner.Add(r)
}

func (a *addedTimes) of(seq int) (us float64, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.joiner.Flush()
	us, ok = a.bySeq[uint16(seq)]
	return us, ok
}

// repliesOf runs a tool to its end, its output kept in memory, and returns what it says of each reply.
func repliesOf(ctx context.Context, l *lab.Lab, host string, argv []string) ([]tool.Reply, error) {
	file, err := memoryFile()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if err := run(ctx, l, host, argv, anyCPU, file); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/self/fd/%d", file.Fd()))
	if err != nil {
		return nil, err
	}
	parser, known := tool.For(argv)
	if !known {
		return nil, fmt.Errorf("the output of %s is not understood", argv[0])
	}
	var replies []tool.Reply
	for line := range bytes.Lines(text) {
		for _, reply := range parser.Parse(strings.TrimRight(string(line), "\r\n")).Replies {
			if !reply.Duplicate {
				replies = append(replies, reply)
			}
		}
	}
	if len(replies) == 0 {
		return nil, errors.New("no reply was received")
	}
	return replies, nil
}

func memoryFile() (*os.File, error) {
	fd, err := unix.MemfdCreate("tare-eval-output", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("making a file in memory: %w", err)
	}
	return os.NewFile(uintptr(fd), "output"), nil
}

// pinned has a command run on one CPU: where ping runs changes its RTT by more than what is compared.
func pinned(cpu int, argv []string) []string {
	return append([]string{"taskset", "-c", fmt.Sprint(cpu)}, argv...)
}
