package arm

import (
	"os"
	"path/filepath"
	"strings"
)

const scratchPrefix = "tare-"

// scratch makes an arm's directory, and removes those of dead owners.
func scratch() (string, error) {
	entries, err := os.ReadDir(os.TempDir())
	if err != nil {
		return "", err
	}
	for _, entry := range entries {
		if tag, ok := strings.CutPrefix(entry.Name(), scratchPrefix); ok && ownerGone(tag) {
			_ = os.RemoveAll(filepath.Join(os.TempDir(), entry.Name()))
		}
	}
	return os.MkdirTemp("", scratchPrefix+newName()+"-")
}
