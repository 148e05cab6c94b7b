package dockctl

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"
)

// Codes of dockdaemon's errors; the others are JSON-RPC's own.
const (
	codeNameInUse     = -32000
	codeAddressInUse  = -32001
	codeNotFound      = -32002
	codeInvalidParams = -32602
)

// patience bounds the wait for an answer. The longest job, removing a pipe, takes a time slice or two.
const patience = 10 * time.Second

// RPCError is an error that dockdaemon answered with.
type RPCError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *RPCError) Error() string { return e.Message }

// Is tells what kind of error it is.
func (e *RPCError) Is(target error) bool {
	switch target {
	case ErrInUse:
		return e.Code == codeNameInUse || e.Code == codeAddressInUse
	case ErrNotFound:
		return e.Code == codeNotFound
	case ErrInvalid:
		return e.Code == codeInvalidParams
	}
	return false
}

// Client is a connection to a dockdaemon.
type Client struct {
	conn   net.Conn
	reader *bufio.Reader
	lastID int
}

// Dial connects to the net's dockdaemon. The error is ErrNotUp if there is none.
func (n *Net) Dial() (*Client, error) {
	conn, err := net.DialTimeout("unix", n.controlPath(), patience)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, fmt.Errorf("net %q %w", n.name, ErrNotUp)
	}
	if err != nil {
		return nil, fmt.Errorf("connecting to the dockdaemon of net %q: %w", n.name, err)
	}
	return &Client{conn: conn, reader: bufio.NewReader(conn)}, nil
}

// Close ends the connection.
func (c *Client) Close() error { return c.conn.Close() }

// call sends one request and decodes its result into result, unless that is nil.
func (c *Client) call(method string, params, result any) error {
	c.lastID++
	request := struct {
		Version string `json:"jsonrpc"`
		ID      int    `json:"id"`
		Method  string `json:"method"`
		Params  any    `json:"params,omitempty"`
	}{"2.0", c.lastID, method, params}
	if err := c.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if err := json.NewEncoder(c.conn).Encode(request); err != nil {
		return fmt.Errorf("asking dockdaemon for %s: %w", method, err)
	}
	line, err := c.reader.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("waiting for dockdaemon's answer to %s: %w", method, err)
	}
	var answer struct {
		ID     int             `json:"id"`
		Result json.RawMessage `json:"result"`
		Error  *RPCError       `json:"error"`
	}
	if err := json.Unmarshal(line, &answer); err != nil || answer.ID != c.lastID {
		return fmt.Errorf("dockdaemon's answer to %s is not understood: %.80q", method, line)
	}
	if answer.Error != nil {
		return answer.Error
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(answer.Result, result)
}

// Info asks for what the daemon is.
func (c *Client) Info() (Info, error) {
	var info Info
	err := c.call("daemon.info", nil, &info)
	return info, err
}

// AddPipe makes a pipe.
func (c *Client) AddPipe(config PipeConfig) error { return c.call("pipe.add", config, nil) }

// RemovePipe detaches a pipe's container and forgets the pipe.
func (c *Client) RemovePipe(name string) error {
	return c.call("pipe.remove", map[string]string{"name": name}, nil)
}

// Pipes lists all pipes.
func (c *Client) Pipes() ([]Pipe, error) {
	var pipes []Pipe
	err := c.call("pipe.list", nil, &pipes)
	return pipes, err
}

// Stats asks for all counters.
func (c *Client) Stats() (Stats, error) {
	var stats Stats
	err := c.call("stats", nil, &stats)
	return stats, err
}

// shutdown ends the daemon, which then does not offer its pipes again.
func (c *Client) shutdown() error {
	return c.call("daemon.shutdown", map[string]bool{"forget": true}, nil)
}
