package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tare/container"
	"tare/mace"
)

// selector is how a command is told which container and which path to watch.
type selector struct {
	container string
	pid       int
	netns     string
	as        string
	path      string
	nics      []string
}

func (s *selector) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	s.addTargetFlags(cmd)
	flags.StringVar(&s.as, "as", "", "what to correct to: bare-metal (the default), the RTT that the tool would show on the host itself; or wire, the RTT at the NIC")
	flags.StringVar(&s.path, "path", "", "event path, instead of --as: "+strings.Join(mace.PathNames(), ", ")+", a path's text, or a file that holds one")
	flags.StringSliceVar(&s.nics, "nic", nil, "device by which packets leave the host (found out if not given)")
}

func (s *selector) addTargetFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&s.container, "container", "", "a running container of Docker or podman, by name or ID; docker:NAME or podman:NAME to say whose")
	flags.IntVar(&s.pid, "pid", 0, "a process: its network namespace")
	flags.StringVar(&s.netns, "netns", "", "a network namespace, by path or by its name in ip netns")
}

// named is how many targets the flags name.
func (s *selector) named() (n int) {
	for _, given := range []bool{s.container != "", s.pid != 0, s.netns != ""} {
		if given {
			n++
		}
	}
	return n
}

// target finds what the flags name.
func (s *selector) target(ctx context.Context) (container.Target, error) {
	switch {
	case s.named() > 1:
		return container.Target{}, usageError("--container, --pid and --netns: give one of them")
	case s.container != "":
		return container.Find(ctx, s.container)
	case s.netns != "":
		return container.FromNetNS(s.netns)
	case s.pid == 0:
		return container.Target{}, usageError("name what to watch: --container NAME, --pid PID or --netns PATH")
	case s.pid < 0:
		return container.Target{}, usageError("--pid %d: a process ID is positive", s.pid)
	}
	return container.FromPID(s.pid)
}

// eventPath is the path that the flags ask for. as is the word for it in output.
func (s *selector) eventPath() (path mace.Path, as string, err error) {
	text := s.as
	switch {
	case s.as != "" && s.path != "":
		return path, "", usageError("--as and --path: give one of them")
	case s.path != "":
		text = s.path
		if !strings.Contains(text, "=") && strings.ContainsAny(text, "/.") {
			content, err := os.ReadFile(text)
			if err != nil {
				return path, "", exitError{code: 2, err: fmt.Errorf("reading event path: %w", err)}
			}
			text = string(content)
		}
	case s.as == "":
		text = "bare-metal"
	case s.as != "bare-metal" && s.as != "wire":
		return path, "", usageError("--as %s: it is bare-metal or wire; for others use --path", text)
	}
	path, err = mace.ParsePath(text)
	if err != nil {
		return path, "", exitError{code: 2, err: err}
	}
	if !slices.Contains(mace.PathNames(), path.Name) {
		return path, "custom", nil // its name is its whole text
	}
	return path, path.Name, nil
}

// withRemedy adds to an error of the engine what can be done about it.
func withRemedy(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, mace.ErrPrivilege), errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%w: run with sudo; 'tare doctor' tells what is missing", err)
	case errors.Is(err, mace.ErrKernel):
		return fmt.Errorf("%w; 'tare doctor' tells what this kernel has", err)
	}
	return err
}
