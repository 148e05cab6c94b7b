package lab

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Removed says what Down did.
type Removed struct {
	Namespaces []string // names of the namespaces taken away
	Killed     []int    // background processes that were still running
	// Lingering processes were inside and not started by the lab (a shell from `tare lab exec`, say). They are not
	// touched; their namespace, by now nameless and without devices, ends with them.
	Lingering []int
}

// Down removes the lab of that name, whole or half-made. It fails with ErrNotFound where there is nothing, and with
// ErrBusy while another process makes or removes it.
func Down(name string) (Removed, error) {
	if err := checkName(name); err != nil {
		return Removed{}, err
	}
	// Looked at first so that asking for a lab that is not there leaves no lock file and needs no rights.
	_, stateErr := readState(name)
	left, err := leftNetNS(name)
	if err != nil {
		return Removed{}, err
	}
	if errors.Is(stateErr, ErrNotFound) && len(left) == 0 {
		if _, err := os.Stat(lockPath(name)); err != nil {
			return Removed{}, stateErr
		}
	}
	lock, err := lockLab(name)
	if err != nil {
		return Removed{}, err
	}
	defer lock.release()
	// Read again: now nobody else writes it. A damaged file must not stand in the way, names tell enough.
	st, stateErr := readState(name)
	removed, err := tearDown(name, st)
	if err != nil {
		return removed, fmt.Errorf("removing lab %q: %w", name, err)
	}
	lock.remove()
	if errors.Is(stateErr, ErrNotFound) && len(removed.Namespaces) == 0 {
		return removed, stateErr
	}
	return removed, nil
}

// Down removes the lab. A lab that is gone already is no error.
func (l *Lab) Down() error {
	if _, err := Down(l.Name()); err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	return nil
}

// tearDown removes everything of a lab but the lock, which the caller holds. st may be nil. The state file goes last,
// and only if nothing else is left.
func tearDown(name string, st *state) (Removed, error) {
	var removed Removed
	var errs []error
	if st != nil {
		// Asked of all before the first is killed: a sender ends by itself when its receiver does.
		for _, process := range runningOf(st.Processes) {
			if err := process.kill(); err != nil {
				errs = append(errs, err)
				continue
			}
			removed.Killed = append(removed.Killed, process.PID)
		}
	}
	// By their names and not by the list in the file: a file that somebody edited removes nobody else's namespace.
	names, err := leftNetNS(name)
	if err != nil {
		return removed, errors.Join(append(errs, err)...)
	}
	paths := make([]string, 0, len(names))
	for _, ns := range names {
		paths = append(paths, netnsPath(ns))
	}
	if len(paths) > 0 {
		removed.Lingering = processesIn(paths)
	}
	// The devices go explicitly, the host's first and with them all their peers: a namespace without a name would
	// keep them as long as a process lingers, and takes them down at the kernel's leisure otherwise.
	for _, ns := range append([]string{netnsName(name, Host)}, names...) {
		if path := netnsPath(ns); isNetNS(path) {
			if err := deleteLinks(path); err != nil {
				errs = append(errs, err)
			}
		}
	}
	for _, ns := range names {
		if err := deleteNetNS(ns); err != nil {
			errs = append(errs, err)
			continue
		}
		removed.Namespaces = append(removed.Namespaces, ns)
	}
	if left, err := leftNetNS(name); err != nil || len(left) > 0 {
		errs = append(errs, err, fmt.Errorf("namespaces that remain: %v", left))
	}
	if err := errors.Join(errs...); err != nil {
		return removed, err
	}
	for _, path := range []string{statePath(name) + ".new", statePath(name)} {
		if err := os.Remove(path); err != nil && !errors.Is(err, unix.ENOENT) {
			return removed, err
		}
	}
	return removed, nil
}
