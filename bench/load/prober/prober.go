// Package prober is tare's own small load tool: a client that sends a message and waits for its echo, over and over, and
// the server that echoes. It exists to check others against, for rounds too short for them, and for paced probing.
//
// It is part of the tare program itself and runs where os.Args[1] is Command. There it is a process of its own, whose
// only work is blocking read and write calls on one thread: no poller, no collector, no preemption by signals.
package prober

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"
)

// Command is the hidden subcommand.
const Command = "bench-prober"

// MinSize and MaxSize bound a message. The least is sockperf's, of which 8 bytes number the message; the most is what a
// UDP datagram holds over IPv4.
const (
	MinSize = 14
	MaxSize = 65507
)

// The Go runtime as quiet as it gets: nothing is ever runnable but the one loop.
var quiet = []string{"GODEBUG=asyncpreemptoff=1", "GOGC=off", "GOMAXPROCS=1", "TARE_PROBER=quiet"}

// RunIfAsked runs the prober and exits, if this process was started as one. It belongs at the top of main, and of
// TestMain in tests that start workloads.
func RunIfAsked() {
	if len(os.Args) < 2 || os.Args[1] != Command {
		return
	}
	if os.Getenv("TARE_PROBER") == "" {
		// The runtime reads its settings when a process starts.
		err := syscall.Exec("/proc/self/exe", os.Args, append(os.Environ(), quiet...))
		fmt.Fprintf(os.Stderr, "%s: starting again: %s\n", Command, err)
		os.Exit(1)
	}
	if err := run(os.Args[2:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %s\n", Command, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// options are the prober's flags.
type options struct {
	server   bool
	udp      bool
	addr     string
	port     uint
	size     int
	rate     int
	duration time.Duration
	warmup   time.Duration
}

// Args are the arguments of a server, or of a client with its duration.
func serverOrClient(role, protocol, addr string, port uint16, size int) []string {
	return []string{Command, "--role=" + role, "--protocol=" + protocol, "--addr=" + addr, fmt.Sprintf("--port=%d", port),
		fmt.Sprintf("--size=%d", size)}
}

// ServerArgs are the arguments with which the program becomes a server for tcp or udp.
func ServerArgs(protocol, addr string, port uint16, size int) []string {
	return serverOrClient("server", protocol, addr, port, size)
}

// ClientArgs are those of a client that probes for d, after warmup, with rate messages per second or, where that is 0,
// with the next as soon as the last has come back.
func ClientArgs(protocol, addr string, port uint16, size, rate int, d, warmup time.Duration) []string {
	return append(serverOrClient("client", protocol, addr, port, size), fmt.Sprintf("--rate=%d", rate),
		"--duration="+d.String(), "--warmup="+warmup.String())
}

func run(args []string, out io.Writer) error {
	var o options
	var role, protocol string
	flags := flag.NewFlagSet(Command, flag.ContinueOnError)
	flags.StringVar(&role, "role", "", "server or client")
	flags.StringVar(&protocol, "protocol", "tcp", "tcp or udp")
	flags.StringVar(&o.addr, "addr", "127.0.0.1", "IP address of the server")
	flags.UintVar(&o.port, "port", 0, "port of the server")
	flags.IntVar(&o.size, "size", MinSize, "bytes of a message")
	flags.IntVar(&o.rate, "rate", 0, "messages per second; 0: one after the other")
	flags.DurationVar(&o.duration, "duration", time.Second, "how long to measure")
	flags.DurationVar(&o.warmup, "warmup", 0, "how long to probe without recording before that")
	if err := flags.Parse(args); err != nil {
		return err
	}
	o.server, o.udp = role == "server", protocol == "udp"
	switch {
	case role != "server" && role != "client":
		return fmt.Errorf("--role=%q is neither server nor client", role)
	case protocol != "tcp" && protocol != "udp":
		return fmt.Errorf("--protocol=%q is neither tcp nor udp", protocol)
	case o.size < MinSize || o.size > MaxSize:
		return fmt.Errorf("--size=%d: %d to %d bytes are possible", o.size, MinSize, MaxSize)
	case o.port == 0 || o.port > 65535:
		return fmt.Errorf("--port=%d is no port", o.port)
	case o.rate < 0 || o.rate > 1e6:
		return fmt.Errorf("--rate=%d: 0 to 1000000 messages per second are possible", o.rate)
	case o.duration <= 0 || o.warmup < 0:
		return errors.New("--duration must be more than 0 and --warmup not less")
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", strings.Join(flags.Args(), " "))
	}
	if o.server {
		return serve(o)
	}
	result, err := probe(o)
	if err != nil {
		return err
	}
	return result.write(out)
}
