package lab

import (
	"errors"
	"fmt"
	"time"
)

// record writes the processes into the state file, for Down and status. Those that ended by themselves long ago go out.
func (ld *Load) record() error {
	return ld.updateState(func(st *state) {
		st.Processes = append(runningOf(st.Processes), ld.Processes()...)
	})
}

// forget takes the processes out of the state file.
func (ld *Load) forget() error {
	mine := map[Process]bool{}
	for _, process := range ld.Processes() {
		mine[process] = true
	}
	return ld.updateState(func(st *state) {
		kept := st.Processes[:0]
		for _, process := range st.Processes {
			if !mine[process] {
				kept = append(kept, process)
			}
		}
		st.Processes = kept
	})
}

func (ld *Load) updateState(change func(*state)) error {
	name := ld.lab.Name()
	if _, err := readState(name); err != nil {
		return err // before the lock, whose file would otherwise outlive the lab
	}
	lock, err := lockLabWithin(name, 2*time.Second)
	if err != nil {
		return err
	}
	defer lock.release()
	st, err := readState(name)
	if errors.Is(err, ErrNotFound) {
		lock.remove()
	}
	if err != nil {
		return err
	}
	if !st.Created.Equal(ld.lab.created) {
		return fmt.Errorf("lab %q %w any more: another of its name does", name, ErrNotFound)
	}
	change(st)
	return writeState(st)
}
