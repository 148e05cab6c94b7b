package environment

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// word is what a file of one line says.
func word(path string) string {
	text, err := os.ReadFile(path)
	if said := strings.Join(strings.Fields(string(text)), " "); err == nil && said != "" {
		return said
	}
	return Unknown
}

// sysctl reads a key, whose own dots, as in a device's name, none of ours has.
func sysctl(key string) string {
	return word("/proc/sys/" + strings.ReplaceAll(key, ".", "/"))
}

func cpuField(name string) string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		if strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return Unknown
}

func mitigations() map[string]string {
	found := map[string]string{}
	files, _ := filepath.Glob("/sys/devices/system/cpu/vulnerabilities/*")
	for _, file := range files {
		found[filepath.Base(file)] = word(file)
	}
	return found
}

func virtualisation() string {
	guest := strings.Contains(" "+cpuField("flags")+" ", " hypervisor ")
	var maker []string
	for _, file := range []string{"sys_vendor", "product_name"} {
		if said := word("/sys/class/dmi/id/" + file); said != Unknown {
			maker = append(maker, said)
		}
	}
	switch text := strings.Join(maker, " "); {
	case guest && text != "":
		return "guest (" + text + ")"
	case guest:
		return "guest"
	case text != "":
		return "none (" + text + ")"
	}
	return Unknown
}

// kernelConfig is the hash of the running kernel's configuration, wherever it is kept.
func kernelConfig(release string) string {
	if file, err := os.Open("/proc/config.gz"); err == nil {
		defer file.Close()
		if unpacked, err := gzip.NewReader(file); err == nil {
			if text, err := io.ReadAll(unpacked); err == nil {
				return hash(text)
			}
		}
	}
	for _, path := range []string{"/boot/config-" + release, "/lib/modules/" + release + "/config"} {
		if text, err := os.ReadFile(path); err == nil {
			return hash(text)
		}
	}
	return Unknown
}

func hash(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// CPUs lists those that this process may use.
func CPUs() []int {
	var set unix.CPUSet
	var cpus []int
	if unix.SchedGetaffinity(0, &set) != nil {
		return []int{0}
	}
	for cpu := range len(set) * 64 {
		if set.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus
}

// ticks are clock ticks of all CPUs together since boot.
type ticks struct{ all, idle, steal uint64 }

func readTicks() ticks {
	text, _ := os.ReadFile("/proc/stat")
	line, _, _ := bytes.Cut(text, []byte("\n"))
	var t ticks
	for i, field := range strings.Fields(string(line)) {
		n, _ := strconv.ParseUint(field, 10, 64)
		if i < 1 || i > 8 { // beyond: guest time, which user time holds already
			continue
		}
		t.all += n
		switch i {
		case 4, 5:
			t.idle += n
		case 8:
			t.steal += n
		}
	}
	return t
}
