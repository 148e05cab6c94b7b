package eval

import (
	"context"
	"sync"
	"time"

	"tare/mace"
)

// watch is an attached engine and namespaces that it watches, whose records are read as `tare run` reads them.
type watch struct {
	engine     *mace.Engine
	namespaces []*mace.Namespace
	onRecord   func(namespace int, r *mace.Record)
	owned      bool // the engine ends with the watch
	stop       context.CancelFunc
	done       sync.WaitGroup
	err        error
}

// drainEvery is subtract's.
const drainEvery = 20 * time.Millisecond

// startWatch opens an engine on the bed's NIC and activates the hosts' namespaces. onRecord may be nil; it is called
// with the host's index, from one goroutine at a time.
func (b *bed) startWatch(options mace.Options, hosts []string, every time.Duration, onRecord func(int, *mace.Record)) (*watch, error) {
	engine, err := b.openEngine(options)
	if err != nil {
		return nil, err
	}
	w, err := b.watchBy(engine, hosts, every, onRecord)
	if err != nil {
		engine.Close()
		return nil, err
	}
	w.owned = true
	return w, nil
}

func (b *bed) openEngine(options mace.Options) (*mace.Engine, error) {
	options.NICs = []mace.Device{b.nic}
	return mace.Open(options)
}

// watchBy is startWatch with an engine that outlives the watch: beside many floods attaching takes seconds.
func (b *bed) watchBy(engine *mace.Engine, hosts []string, every time.Duration, onRecord func(int, *mace.Record)) (_ *watch, err error) {
	w := &watch{engine: engine, onRecord: onRecord}
	defer func() {
		if err != nil {
			w.deactivate()
		}
	}()
	for _, host := range hosts {
		cookie, err := b.lab.NetNSCookie(host)
		if err != nil {
			return nil, err
		}
		ns, err := engine.Activate(cookie)
		if err != nil {
			return nil, err
		}
		w.namespaces = append(w.namespaces, ns)
	}
	var ctx context.Context
	ctx, w.stop = context.WithCancel(context.Background())
	w.done.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				w.drain()
			}
		}
	})
	return w, nil
}

func (w *watch) drain() {
	for i, ns := range w.namespaces {
		err := ns.Drain(func(r *mace.Record) {
			if w.onRecord != nil {
				w.onRecord(i, r)
			}
		})
		if err != nil && w.err == nil {
			w.err = err
		}
	}
}

// finish reads what is left. The counts may still be read.
func (w *watch) finish() error {
	w.stop()
	w.done.Wait()
	w.drain()
	return w.err
}

// close detaches, or deactivates where the engine is another's.
func (w *watch) close() error {
	w.stop()
	w.done.Wait()
	if w.owned {
		return w.engine.Close()
	}
	w.deactivate()
	return nil
}

func (w *watch) deactivate() {
	for _, ns := range w.namespaces {
		ns.Close()
	}
}
