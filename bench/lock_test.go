package bench

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestLock(t *testing.T) {
	before := LockPath
	LockPath = filepath.Join(t.TempDir(), "tare", "bench.lock")
	defer func() { LockPath = before }()
	lock, err := TakeLock()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := TakeLock(); !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), fmt.Sprintf("process %d holds", os.Getpid())) {
		t.Errorf("%v", err)
	}
	lock.Release()
	if _, err := os.Stat(filepath.Dir(LockPath)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("left behind: %v", err)
	}
	// A file that a killed benchmark left is no lock.
	if err := os.MkdirAll(filepath.Dir(LockPath), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(LockPath, []byte("1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if lock, err = TakeLock(); err != nil {
		t.Fatal(err)
	}
	lock.Release()
}

// The lock goes with its holder, however that ends.
func TestLockOfAKilledHolder(t *testing.T) {
	if os.Getenv("TARE_TEST_HOLD") != "" {
		LockPath = os.Getenv("TARE_TEST_HOLD")
		if _, err := TakeLock(); err != nil {
			t.Fatal(err)
		}
		fmt.Println("held")
		select {}
	}
	before := LockPath
	LockPath = filepath.Join(t.TempDir(), "bench.lock")
	defer func() { LockPath = before }()
	holder := exec.Command(os.Args[0], "-test.run", "TestLockOfAKilledHolder")
	holder.Env = append(os.Environ(), "TARE_TEST_HOLD="+LockPath)
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Process.Kill(); _ = holder.Wait() }()
	if _, err := out.Read(make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	if _, err := TakeLock(); !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), fmt.Sprintf("process %d ", holder.Process.Pid)) {
		t.Errorf("%v", err)
	}
	_ = holder.Process.Kill()
	_ = holder.Wait()
	lock, err := TakeLock()
	if err != nil {
		t.Fatal(err)
	}
	lock.Release()
}
