package load

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Nothing is sent to find out whether a server listens: a connection would be the first one that it serves, and a
// published port accepts connections without any server.

// listens reports whether process pid itself has a socket that listens on port.
func listens(pid int, network string, port uint16) bool {
	inodes := listeners(fmt.Sprintf("/proc/%d/net", pid), network, port)
	return len(inodes) > 0 && holdsSocket(pid, inodes)
}

// holderOf names the process that listens on port in a network namespace, as "nginx (pid 123)"; "" if none does.
func holderOf(netns, network string, port uint16) string {
	var there unix.Stat_t
	if unix.Stat(netns, &there) != nil {
		return ""
	}
	entries, _ := filepath.Glob("/proc/[0-9]*")
	for _, entry := range entries {
		var st unix.Stat_t
		if unix.Stat(entry+"/ns/net", &st) != nil || st.Ino != there.Ino {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(entry))
		if listens(pid, network, port) {
			name, _ := os.ReadFile(entry + "/comm")
			return fmt.Sprintf("%s (pid %d)", strings.TrimSpace(string(name)), pid)
		}
	}
	return ""
}

// listeners returns the inodes of the sockets of a /proc/<pid>/net that wait for clients on port.
func listeners(dir, network string, port uint16) map[string]bool {
	state := "0A" // TCP_LISTEN
	if network == "udp" {
		state = "07" // a UDP socket without a peer
	}
	inodes := map[string]bool{}
	for _, name := range []string{network, network + "6"} {
		file, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			continue
		}
		for scanner := bufio.NewScanner(file); scanner.Scan(); {
			if inode, ok := listener(scanner.Text(), state, port); ok {
				inodes[inode] = true
			}
		}
		file.Close()
	}
	return inodes
}

// listener reads a line of /proc/net/tcp: "0: 0100007F:1F90 00000000:0000 0A ... inode ...".
func listener(line, state string, port uint16) (inode string, ok bool) {
	fields := strings.Fields(line)
	if len(fields) < 10 || fields[3] != state {
		return "", false
	}
	_, hex, found := strings.Cut(fields[1], ":")
	got, err := strconv.ParseUint(hex, 16, 16)
	return fields[9], found && err == nil && uint16(got) == port
}

func holdsSocket(pid int, inodes map[string]bool) bool {
	entries, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		return false
	}
	for _, entry := range entries {
		target, err := os.Readlink(entry)
		inode, isSocket := strings.CutPrefix(target, "socket:[")
		if err == nil && isSocket && inodes[strings.TrimSuffix(inode, "]")] {
			return true
		}
	}
	return false
}
