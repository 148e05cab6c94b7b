package arm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// engine is a container runtime, known by its client: docker or podman.
type engine string

const (
	docker engine = "docker"
	podman engine = "podman"
)

// ownerLabel marks containers and networks that benchmarks made; its value is the owner's tag.
const ownerLabel = "tare.bench.owner"

const runtimePatience = 30 * time.Second // for any one answer of a runtime, on a busy machine

// output runs the runtime's client and returns what it printed. The error is one line.
func (r engine) output(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, runtimePatience, fmt.Errorf("no answer in %s", runtimePatience))
	defer cancel()
	var complaint bytes.Buffer
	cmd := exec.CommandContext(ctx, string(r), args...)
	cmd.Stderr = &complaint
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", r, args[0], err, strings.Join(strings.Fields(complaint.String()), " "))
	}
	return strings.TrimSpace(string(out)), nil
}

// check returns why no container can be started here; nil where one can.
func (r engine) check(ctx context.Context) error {
	if _, err := exec.LookPath(string(r)); err != nil {
		return fmt.Errorf("%s is not installed", r)
	}
	format := "{{.ServerVersion}}"
	if r == podman {
		format = "{{.Version.Version}}"
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	version, err := r.output(ctx, "info", "--format", format)
	if err == nil && version == "" {
		err = errors.New("it has no server")
	}
	if err != nil {
		return fmt.Errorf("%s does not answer (is its daemon running, and may this user speak to it?): %w", r, err)
	}
	return nil
}

// version is for Describe.
func (r engine) version(ctx context.Context) string {
	format := "{{.Server.Version}}"
	if r == podman {
		format = "{{.Client.Version}}"
	}
	version, err := r.output(ctx, "version", "--format", format)
	if err != nil {
		return string(r) + ", version unknown"
	}
	return string(r) + " " + version
}

// sweep removes containers and networks of dead owners.
func (r engine) sweep(ctx context.Context) error {
	for _, kind := range []struct {
		list   []string
		remove []string
	}{
		{[]string{"ps", "--all"}, []string{"rm", "--force"}},
		{[]string{"network", "ls"}, []string{"network", "rm"}},
	} {
		list := append(kind.list, "--filter", "label="+ownerLabel, "--format", "{{.ID}}")
		ids, err := r.output(ctx, list...)
		if err != nil {
			return err
		}
		for _, id := range strings.Fields(ids) {
			inspect, label := []string{"inspect"}, `{{index .Config.Labels "`+ownerLabel+`"}}`
			if kind.list[0] == "network" {
				inspect, label = []string{"network", "inspect"}, `{{index .Labels "`+ownerLabel+`"}}`
			}
			owner, err := r.output(ctx, append(inspect, "--format", label, id)...)
			if err != nil || !ownerGone(owner) {
				continue // gone meanwhile, or another benchmark's
			}
			if _, err := r.output(ctx, append(kind.remove, id)...); err != nil && !strings.Contains(err.Error(), "o such") {
				return fmt.Errorf("removing what a killed benchmark left: %w", err)
			}
		}
	}
	return nil
}
