package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const (
	stateDir    = "/run/tare/lab"
	stateSuffix = ".json"
	lockSuffix  = ".lock"
)

// A lab is phaseCreating from before its first part exists until its last part works.
const (
	phaseCreating = "creating"
	phaseUp       = "up"
)

// state is what the state file says.
type state struct {
	Phase      string    `json:"phase"`
	Created    time.Time `json:"created"`
	Options    Options   `json:"options"`
	Namespaces []string  `json:"namespaces"`
	Processes  []Process `json:"processes,omitempty"`
}

func statePath(name string) string { return filepath.Join(stateDir, name+stateSuffix) }

func lockPath(name string) string { return filepath.Join(stateDir, name+lockSuffix) }

func readState(name string) (*state, error) {
	text, err := os.ReadFile(statePath(name))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("lab %q %w", name, ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the state of lab %q: %w", name, err)
	}
	var st state
	if err := json.Unmarshal(text, &st); err != nil {
		return nil, fmt.Errorf("lab %q %w: its state file %s is damaged: %w", name, ErrIncomplete, statePath(name), err)
	}
	return &st, nil
}

// writeState replaces the state file in one step: a reader sees the old or the new one, whole.
func writeState(st *state) error {
	text, err := json.MarshalIndent(st, "", "  ")
	if err != nil {
		return err
	}
	path := statePath(st.Options.Name)
	if err := os.WriteFile(path+".new", append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing the state of lab %q: %w", st.Options.Name, err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("writing the state of lab %q: %w", st.Options.Name, err)
	}
	return nil
}

// labLock is held by whoever changes a lab. The kernel lets go of it when the holder dies, however that happens.
type labLock struct {
	file *os.File
	path string
}

// lockLab takes the lab's lock, or fails at once with ErrBusy.
func lockLab(name string) (*labLock, error) {
	path := lockPath(name)
	for {
		if err := os.MkdirAll(stateDir, 0o755); err != nil {
			return nil, fmt.Errorf("creating %s: %w", stateDir, err)
		}
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
		if errors.Is(err, os.ErrNotExist) {
			continue // remove() of another lab took the empty directory away
		}
		if err != nil {
			return nil, fmt.Errorf("locking lab %q: %w", name, err)
		}
		if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			file.Close()
			if errors.Is(err, unix.EWOULDBLOCK) {
				return nil, fmt.Errorf("lab %q %w", name, ErrBusy)
			}
			return nil, fmt.Errorf("locking lab %q: %w", name, err)
		}
		// The holder before us may have removed the file between our open and our lock: then this lock guards nothing.
		mine, err := file.Stat()
		if err == nil {
			var now os.FileInfo
			if now, err = os.Stat(path); err == nil && os.SameFile(mine, now) {
				return &labLock{file: file, path: path}, nil
			}
		}
		file.Close()
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("locking lab %q: %w", name, err)
		}
	}
}

// lockLabWithin is lockLab with patience, for changes that take others a moment.
func lockLabWithin(name string, patience time.Duration) (*labLock, error) {
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		lock, err := lockLab(name)
		if err == nil || !errors.Is(err, ErrBusy) || time.Now().After(deadline) {
			return lock, err
		}
	}
}

func (l *labLock) release() { l.file.Close() }

// remove deletes the lock file while it is held, and the directory with it if this was the last lab.
func (l *labLock) remove() {
	os.Remove(l.path)
	os.Remove(stateDir) // fails while it is not empty
}
