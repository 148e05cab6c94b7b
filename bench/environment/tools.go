package environment

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"unsafe"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"
)

// How a tool is asked for its version, where it is not --version.
var versionArgument = map[string]string{"ping": "-V", "wrk": "-v", "nginx": "-v", "ovs-vswitchd": "--version"}

func describeTool(ctx context.Context, name string) Tool {
	t := Tool{Name: name, Path: Unknown, Version: Unknown, SHA256: Unknown}
	path, err := exec.LookPath(name)
	if err != nil {
		return t
	}
	if t.Path = path; filepath.IsAbs(name) {
		t.Name = filepath.Base(name)
	}
	if text, err := os.ReadFile(path); err == nil {
		t.SHA256 = hash(text)
	}
	argument, known := versionArgument[t.Name]
	if !known {
		argument = "--version"
	}
	ctx, cancel := context.WithTimeout(ctx, toolTime)
	defer cancel()
	out, _ := exec.CommandContext(ctx, path, argument).CombinedOutput() // some have no exit code 0 for this
	if line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n"); line != "" {
		t.Version = strings.TrimSpace(line)
	}
	return t
}

// nftRules counts the rules that packets of the host's network namespace may meet.
func nftRules() int {
	connection, err := nftables.New()
	if err != nil {
		return -1
	}
	tables, err := connection.ListTables()
	if err != nil {
		return -1
	}
	count := 0
	for _, table := range tables {
		chains, err := connection.ListChainsOfTableFamily(table.Family)
		if err != nil {
			return -1
		}
		for _, chain := range chains {
			if chain.Table.Name != table.Name {
				continue
			}
			rules, err := connection.GetRules(table, chain)
			if err != nil {
				return -1
			}
			count += len(rules)
		}
	}
	return count
}

// The legacy questions of linux/ethtool.h, each of which speaks for its group of features.
var offloadQuestions = []struct {
	name    string
	command uint32
}{
	{"rx-checksum", 0x14}, {"tx-checksum", 0x16}, {"sg", 0x18}, {"tso", 0x1e}, {"gso", 0x23}, {"gro", 0x2b},
}

// offloads says of each device that carries packets here what is switched on.
func offloads() map[string]string {
	found := map[string]string{}
	devices, _ := net.Interfaces()
	for _, device := range devices {
		if device.Flags&net.FlagUp == 0 || strings.HasPrefix(device.Name, "veth") {
			continue // a container's veth has a name by chance; the arm describes its own
		}
		var on []string
		for _, question := range offloadQuestions {
			if value, err := ethtool(device.Name, question.command); err == nil && value != 0 {
				on = append(on, question.name)
			}
		}
		found[device.Name] = fmt.Sprintf("mtu %d %s", device.MTU, strings.Join(on, " "))
	}
	return found
}

func ethtool(device string, command uint32) (uint32, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0) // any socket does
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	argument := &struct{ command, value uint32 }{command: command} // struct ethtool_value
	request := struct {                                            // struct ifreq, of 40 bytes
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}{data: unsafe.Pointer(argument)}
	copy(request.name[:unix.IFNAMSIZ-1], device)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request))); errno != 0 {
		return 0, errno
	}
	return argument.value, nil
}
