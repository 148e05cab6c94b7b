package container

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// What can be wrong with a container's name. The errors that Find returns wrap one of these and give the details.
var (
	ErrNotFound   = errors.New("no such container")
	ErrNotRunning = errors.New("container is not running")
	ErrAmbiguous  = errors.New("more than one container")
	ErrNoRuntime  = errors.New("neither Docker nor podman can be asked")
	ErrElsewhere  = errors.New("container runs on another machine")
)

// inspectTimeout is long for a busy machine, and short enough to tell a person that a daemon hangs.
const inspectTimeout = 20 * time.Second

// Find returns a running container by name, ID or unambiguous start of an ID. Docker and podman are both asked;
// where both have that name, "docker:NAME" or "podman:NAME" chooses.
//
// They are asked through their command-line clients. Those are what the person at the terminal uses, so they
// honour the same contexts, environment variables and configuration, and "docker ps" shows exactly what tare
// finds. And of podman's storage only podman itself knows the layout.
func Find(ctx context.Context, name string) (Target, error) {
	runtimes := []Runtime{Docker, Podman}
	bare := name
	for _, runtime := range runtimes {
		if rest, ok := strings.CutPrefix(name, string(runtime)+":"); ok {
			runtimes, bare = []Runtime{runtime}, rest
		}
	}
	if bare == "" {
		return Target{}, fmt.Errorf("%w: its name is empty", ErrNotFound)
	}
	var found []inspected
	var answers []string // what each runtime said that did not have it
	asked := 0
	for _, runtime := range runtimes {
		container, err := inspect(ctx, runtime, bare)
		switch {
		case ctx.Err() != nil:
			return Target{}, fmt.Errorf("asking %s for %q: %w", runtime, bare, context.Cause(ctx))
		case err == nil:
			asked++
			// podman-docker installs podman under Docker's name; the real one answers later and wins.
			if len(found) == 1 && found[0].ID == container.ID {
				found = nil
			}
			found = append(found, container)
		case errors.Is(err, ErrNotFound):
			asked++
			answers = append(answers, fmt.Sprintf("%s does not know it", runtime))
		default:
			answers = append(answers, fmt.Sprintf("%s: %s", runtime, err))
		}
	}
	switch {
	case len(found) == 1:
		return found[0].target()
	case len(found) > 1:
		return Target{}, fmt.Errorf("%w is called %q: say docker:%[2]s or podman:%[2]s", ErrAmbiguous, bare)
	case asked == 0:
		return Target{}, fmt.Errorf("%w for %q (%s): start the Docker daemon or install podman, or give a process ID or network namespace instead",
			ErrNoRuntime, bare, strings.Join(answers, "; "))
	}
	return Target{}, fmt.Errorf("%w: %q (%s)", ErrNotFound, bare, strings.Join(answers, "; "))
}

// inspected is the part of 'inspect' that Docker and podman agree on.
type inspected struct {
	runtime Runtime

	ID    string `json:"Id"`
	Name  string
	State struct {
		Status string // created, running, paused, restarting, removing, exited, dead
		Pid    int
	}
	NetworkSettings struct {
		SandboxKey string // a path to the network namespace; empty for one that was joined or is the host's
	}
}

// inspect asks one runtime for one container. Its error wraps ErrNotFound only if the runtime said so itself.
func inspect(ctx context.Context, runtime Runtime, name string) (inspected, error) {
	client, err := exec.LookPath(string(runtime))
	if err != nil {
		return inspected{}, errors.New("not installed")
	}
	ctx, cancel := context.WithTimeout(ctx, inspectTimeout)
	defer cancel()
	var output, complaint bytes.Buffer
	command := exec.CommandContext(ctx, client, "container", "inspect", "--", name)
	command.Stdout, command.Stderr = &output, &complaint
	command.WaitDelay = time.Second // a wrapper script's child may hold the output open
	if err := command.Run(); err != nil {
		message := strings.TrimSpace(complaint.String())
		switch {
		case ctx.Err() != nil:
			return inspected{}, fmt.Errorf("no answer: %w", ctx.Err())
		case strings.Contains(strings.ToLower(message), "no such container"):
			return inspected{}, ErrNotFound
		case message == "":
			return inspected{}, err
		}
		return inspected{}, errors.New(message)
	}
	var containers []inspected
	if err := json.Unmarshal(output.Bytes(), &containers); err != nil {
		return inspected{}, fmt.Errorf("reading what inspect printed: %w", err)
	}
	if len(containers) != 1 {
		return inspected{}, fmt.Errorf("inspect described %d containers, want 1", len(containers))
	}
	containers[0].runtime = runtime
	return containers[0], nil
}

// target verifies that the container runs, and runs here.
func (c inspected) target() (Target, error) {
	name := strings.TrimPrefix(c.Name, "/") // Docker's names are paths, a left-over of container links
	if c.State.Status != "running" || c.State.Pid <= 0 {
		return Target{}, fmt.Errorf("%w: %s:%s is %s", ErrNotRunning, c.runtime, name, c.State.Status)
	}
	target, err := FromPID(c.State.Pid)
	switch {
	case errors.Is(err, os.ErrPermission):
		return Target{}, fmt.Errorf("%s:%s: %w", c.runtime, name, err)
	case err != nil || !c.isHere():
		// A client can talk to a virtual machine or over SSH. Its process IDs mean something else there, and measuring
		// whatever has that number here would be worse than an error.
		return Target{}, fmt.Errorf("%w: process %d here is not %s:%s", ErrElsewhere, c.State.Pid, c.runtime, name)
	}
	target.Runtime, target.ID, target.Name = c.runtime, c.ID, name
	return target, nil
}

// isHere reports whether the container's process ID means this machine's process: its network namespace is the
// one that the runtime names by path, or its control group is called after the container.
func (c inspected) isHere() bool {
	if c.NetworkSettings.SandboxKey != "" {
		same, err := sameNetNS(c.NetworkSettings.SandboxKey, fmt.Sprintf("/proc/%d/ns/net", c.State.Pid))
		if err == nil {
			return same
		}
	}
	groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", c.State.Pid))
	return err == nil && c.ID != "" && strings.Contains(string(groups), c.ID)
}
