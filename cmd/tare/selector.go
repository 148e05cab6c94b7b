package main

import (
	"context"
	"errors"
	"fmt"
	"os"
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
	flags.StringVar(&s.container, "container", "", "a running container of Docker or podman, by name or ID; docker:NAME or podman:NAME to say whose")
	flags.IntVar(&s.pid, "pid", 0, "a process: its network namespace")
	flags.StringVar(&s.netns, "netns", "", "a network namespace, by path or by its name in ip netns")
	flags.StringVar(&s.as, "as", "bare-metal", "what to correct to: bare-metal, the RTT that the tool would show on the host itself; or wire, the RTT at the NIC")
	flags.StringVar(&s.path, "path", "", "event path, instead of --as: "+strings.Join(mace.PathNames(), ", ")+", a path's text, or a file that holds one")
	flags.StringSliceVar(&s.nics, "nic", nil, "device by which packets leave the host (found out if not given)")
	cmd.MarkFlagsMutuallyExclusive("container", "pid", "netns")
	cmd.MarkFlagsMutuallyExclusive("as", "path")
}

// target finds what the flags name.
func (s *selector) target(ctx context.Context) (container.Target, error) {
	switch {
	case s.container != "":
		return container.Find(ctx, s.container)
	case s.pid != 0:
		return container.FromPID(s.pid)
	case s.netns != "":
		return container.FromNetNS(s.netns)
	}
	return container.Target{}, usageError("name what to watch: --container NAME, --pid PID or --netns PATH")
}

// eventPath is the path that the flags ask for. as is the word for it in output.
func (s *selector) eventPath() (path mace.Path, as string, err error) {
	text := s.as
	if s.path != "" {
		text = s.path
		if !strings.Contains(text, "=") && strings.ContainsAny(text, "/.") {
			content, err := os.ReadFile(text)
			if err != nil {
				return path, "", exitError{code: 2, err: fmt.Errorf("reading event path: %w", err)}
			}
			text = string(content)
		}
	} else if text != "bare-metal" && text != "wire" {
		return path, "", usageError("--as %s: it is bare-metal or wire; for others use --path", text)
	}
	path, err = mace.ParsePath(text)
	if err != nil {
		return path, "", exitError{code: 2, err: err}
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
