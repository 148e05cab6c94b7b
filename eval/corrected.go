package eval

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"tare/mace"
	"tare/subtract"
)

// correctedReply is one line of `tare run -o json`.
type correctedReply struct {
	Seq         int      `json:"seq"`
	RTTUs       float64  `json:"rtt_us"`
	CorrectedUs *float64 `json:"corrected_us"`
	Status      string   `json:"status"`
}

// correctedRun is what `tare run` says of one run of a tool in c1.
type correctedRun struct {
	replies  []correctedReply
	received int
	matched  int
	audit    subtract.Audit
}

// runCorrected does what `tare run --as AS -o json -- ARGV` does, in this process.
func (b *bed) runCorrected(ctx context.Context, as string, argv []string) (correctedRun, error) {
	var result correctedRun
	ctx, cancel := context.WithTimeout(ctx, toolTime)
	defer cancel()
	path, err := mace.ParsePath(as)
	if err != nil {
		return result, err
	}
	var out, errs bytes.Buffer
	err = subtract.Run(ctx, subtract.RunOptions{
		Options: subtract.Options{Target: b.c1, Path: path}, Argv: argv, As: as, JSON: true, Stdout: &out, Stderr: &errs,
	})
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	var ended subtract.ToolError
	if errors.As(err, &ended) && ended.Code == 1 {
		err = nil // some reply was missing: the counts tell
	}
	if err == nil {
		err = result.parse(&out)
	}
	if err != nil {
		return result, fmt.Errorf("measuring %s in c1: %w %s", strings.Join(argv, " "), err, strings.TrimSpace(errs.String()))
	}
	return result, nil
}

func (r *correctedRun) parse(out io.Reader) error {
	decoder := json.NewDecoder(out)
	for {
		var raw json.RawMessage
		if err := decoder.Decode(&raw); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return fmt.Errorf("reading the corrected output: %w", err)
		}
		if err := r.parseLine(raw); err != nil {
			return fmt.Errorf("reading the corrected output: %w", err)
		}
	}
	if r.received == 0 {
		return errors.New("no reply was received")
	}
	return nil
}

func (r *correctedRun) parseLine(raw json.RawMessage) error {
	var line struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(raw, &line); err != nil {
		return err
	}
	switch line.Type {
	case "rtt":
		var reply correctedReply
		if err := json.Unmarshal(raw, &reply); err != nil {
			return err
		}
		r.replies = append(r.replies, reply)
	case "summary":
		var summary struct {
			Received int            `json:"received"`
			Matched  int            `json:"matched"`
			Audit    subtract.Audit `json:"audit"`
		}
		if err := json.Unmarshal(raw, &summary); err != nil {
			return err
		}
		r.received, r.matched, r.audit = summary.Received, summary.Matched, summary.Audit
	}
	return nil
}

// Coverage counts replies and what became of them.
type Coverage struct {
	Received int     `json:"received"`
	Matched  int     `json:"matched"`
	Share    float64 `json:"share"`
	// Packets that the container's devices counted and the programs did not see.
	Unseen uint64         `json:"unseen"`
	Status map[string]int `json:"status"`
}

func (c *Coverage) add(r correctedRun) {
	c.Received += r.received
	c.Matched += r.matched
	c.Unseen += r.audit.Missing()
	if c.Status == nil {
		c.Status = map[string]int{}
	}
	for _, reply := range r.replies {
		c.Status[reply.Status]++
	}
	c.Share = float64(c.Matched) / float64(c.Received)
}
