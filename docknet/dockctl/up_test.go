package dockctl

import (
	"strings"
	"testing"
)

func TestCheckMemory(t *testing.T) {
	if err := checkMemory(16); err != nil {
		t.Error(err)
	}
	const exbibyte = 1 << 40
	if err := checkMemory(exbibyte); err == nil || !strings.Contains(err.Error(), "MiB are available") {
		t.Errorf("an exbibyte: %v", err)
	}
}
