package arm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func init() {
	register(110, Arm{
		Name: "docker-published", Summary: "host to a port of a Docker container published on 127.0.0.1: through docker-proxy",
		Check: docker.check, Up: upDockerPublished,
	})
}

func upDockerPublished(ctx context.Context, o Options) (*Link, error) {
	port := o.port()
	link, err := docker.serverInContainer(ctx, o, "lo - docker-proxy, a program - docker0 - veth - eth0",
		"--publish", fmt.Sprintf("127.0.0.1:%d:%d/tcp", port, port), "--publish", fmt.Sprintf("127.0.0.1:%d:%d/udp", port, port))
	if err != nil {
		return nil, err
	}
	if !proxies(port) {
		return nil, errors.Join(fmt.Errorf("nothing to measure: Docker's daemon publishes ports without docker-proxy (userland-proxy is off)"), link.Close())
	}
	link.ServerAddr = localhost
	link.NoICMP = "nothing but TCP and UDP is published, the host itself would answer"
	link.Describe["published"] = fmt.Sprintf("127.0.0.1:%d", port)
	return link, nil
}

// proxies reports whether a docker-proxy serves the host's port. Connections to 127.0.0.1 pass it, and not NAT: Docker's
// rules leave out 127.0.0.0/8.
func proxies(port uint16) bool {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		argv := strings.Split(strings.TrimRight(string(text), "\x00"), "\x00")
		if !strings.HasSuffix(argv[0], "docker-proxy") {
			continue
		}
		for i := range argv[:len(argv)-1] {
			if argv[i] == "-host-port" && argv[i+1] == fmt.Sprint(port) {
				return true
			}
		}
	}
	return false
}
