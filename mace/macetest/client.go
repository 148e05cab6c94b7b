// Package macetest is traffic for tests of packets: a program that asks a remote host and waits for its answers, by any
// system call that there is, and says what it saw.
//
// It runs as a process of its own. What the engine tells of a packet depends on the thread that sent it: on its network
// namespace, its process ID, its system call and its socket; all of these must be a container's.
package macetest

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"time"
)

// Client is what a process does: Requests times, send Size bytes and wait until they have come back.
type Client struct {
	Protocol string         // "udp", "tcp", "raw" (ICMP by a raw socket) or "ping" (ICMP by a datagram socket)
	Remote   netip.AddrPort // an echo server; for ICMP its port means nothing
	Requests int
	Size     int    // of the payload, at least 8; 0 means 32
	Send     string // a key of Senders; empty means "send"
	Receive  string // a key of Receivers; empty means "recvmsg"
	Stamp    string // a key of Stamps; empty means no receive stamps
	Batch    int    // requests that are sent before the first answer is read; 0 means 1
	Peek     bool   // reads each answer twice, first with MSG_PEEK
	Late     bool   // waits for LateBy before it reads an answer
	// Inherited: the socket is the process's descriptor 3, opened and connected by somebody else.
	Inherited bool
}

// Result is what the process has seen.
type Result struct {
	PID     int
	Replies []Reply
}

// Reply is one answer.
type Reply struct {
	Seq uint64 // of the request, from 0
	// StampNS is the receive stamp that the kernel gave with it, in ns of CLOCK_REALTIME; 0 without one.
	StampNS int64
}

// LateBy is how late a late reader is: later than the engine trusts what it knows of a packet under way.
const LateBy = 1200 * time.Millisecond

const environment = "TARE_MACETEST_CLIENT"

// Main is the process, if this one is meant to be it. Call it first in TestMain.
func Main() {
	if text, ok := os.LookupEnv(spinnerEnvironment); ok {
		spinner(text)
	}
	text, ok := os.LookupEnv(environment)
	if !ok {
		return
	}
	var c Client
	err := json.Unmarshal([]byte(text), &c)
	if err == nil {
		err = c.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func (c *Client) withDefaults() {
	if c.Size == 0 {
		c.Size = 32
	}
	if c.Send == "" {
		c.Send = "send"
	}
	if c.Receive == "" {
		c.Receive = "recvmsg"
	}
	if c.Batch == 0 {
		c.Batch = 1
	}
}

// run opens the socket, says so, and begins when it is told to.
func (c *Client) run() error {
	c.withDefaults()
	s, err := c.open()
	if err != nil {
		return err
	}
	fmt.Println("ready")
	var begin string
	if _, err := fmt.Scanln(&begin); err != nil {
		return fmt.Errorf("waiting for the word to begin: %w", err)
	}
	result := Result{PID: os.Getpid()}
	for seq := 0; seq < c.Requests; seq += c.Batch {
		var requests [][]byte
		for i := seq; i < min(seq+c.Batch, c.Requests); i++ {
			requests = append(requests, s.request(uint64(i), c.Size))
		}
		if err := s.send(requests); err != nil {
			return fmt.Errorf("%s of request %d: %w", c.Send, seq, err)
		}
		if c.Late {
			time.Sleep(LateBy)
		}
		replies, err := s.receive(len(requests))
		if err != nil {
			return fmt.Errorf("%s of answer %d: %w", c.Receive, seq, err)
		}
		result.Replies = append(result.Replies, replies...)
	}
	return json.NewEncoder(os.Stdout).Encode(result)
}
