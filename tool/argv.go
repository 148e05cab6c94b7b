package tool

import (
	"path"
	"strconv"
	"strings"
)

// wrappers are programs that run the command in their arguments in their own
// place. The value says which of their options take a value in the next
// argument, and how many arguments of their own precede the command.
var wrappers = map[string]struct {
	valued string
	own    int
}{
	"busybox": {"", 0},
	"env":     {"uC", 0},
	"nice":    {"n", 0},
	"nohup":   {"", 0},
	"setsid":  {"", 0},
	"stdbuf":  {"ioe", 0},
	"taskset": {"", 1},
	"timeout": {"ks", 1},
}

// For returns a parser for the tool that argv runs: ping, fping or traceroute,
// by any path, from busybox or not, behind env, timeout and their like. A
// shell is not looked into: what it runs is anybody's guess.
func For(argv []string) (Parser, bool) {
	busybox := false
	for range 8 { // wrappers within wrappers; more than this is no measurement
		if len(argv) == 0 {
			return nil, false
		}
		name := path.Base(argv[0])
		switch strings.TrimSuffix(name, ".db") { // Debian's name behind /etc/alternatives
		case "ping", "ping4", "ping6":
			return new(ping), true
		case "fping", "fping6":
			return newFping(argv[1:]), true
		case "traceroute", "traceroute4", "traceroute6", "tcptraceroute":
			return newTraceroute(name, argv[1:], busybox), true
		}
		w, ok := wrappers[name]
		if !ok {
			return nil, false
		}
		busybox = busybox || name == "busybox"
		argv = unwrap(argv[1:], w.valued, w.own)
	}
	return nil, false
}

// unwrap skips a wrapper's options and own arguments.
func unwrap(args []string, valued string, own int) []string {
	for len(args) > 0 {
		a := args[0]
		args = args[1:]
		switch {
		case a == "--":
			return args[min(own, len(args)):]
		case len(a) > 1 && a[0] == '-':
			if len(a) == 2 && strings.Contains(valued, a[1:]) && len(args) > 0 {
				args = args[1:]
			}
		case strings.Contains(a, "=") && own == 0: // env A=1 ping
		case own > 0:
			own--
		default:
			return append([]string{a}, args...)
		}
	}
	return nil
}

// options reads argv as getopt does: clustered flags, values joined or apart,
// long options with "=" or a value apart. valued names the short options that
// take a value, long gives the short name of those long options that matter.
// The result has a key for each option that was given.
func options(args []string, valued string, long map[string]byte) map[byte]string {
	got := make(map[byte]string)
	for len(args) > 0 {
		a := args[0]
		args = args[1:]
		if a == "--" {
			break
		}
		if name, isLong := strings.CutPrefix(a, "--"); isLong {
			name, value, joined := strings.Cut(name, "=")
			short, known := long[name]
			if !known {
				continue
			}
			if !joined && strings.IndexByte(valued, short) >= 0 && len(args) > 0 {
				value, args = args[0], args[1:]
			}
			got[short] = value
			continue
		}
		if len(a) < 2 || a[0] != '-' {
			continue // a target
		}
		for i := 1; i < len(a); i++ {
			if strings.IndexByte(valued, a[i]) < 0 {
				got[a[i]] = ""
				continue
			}
			value := a[i+1:]
			if value == "" && len(args) > 0 {
				value, args = args[0], args[1:]
			}
			got[a[i]] = value
			break
		}
	}
	return got
}

// number is the value of an option if it is within the bounds, or otherwise.
func number(value string, low, high, otherwise int) int {
	n, err := strconv.Atoi(value)
	if err != nil || n < low || n > high {
		return otherwise
	}
	return n
}
