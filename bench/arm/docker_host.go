package arm

import "context"

func init() {
	register(90, Arm{
		Name: "docker-host", Summary: "host to a Docker container with --network=host: what a container costs without its network",
		Check: docker.check, Up: upDockerHost,
	})
}

func upDockerHost(ctx context.Context, o Options) (*Link, error) {
	link, err := docker.serverInContainer(ctx, o, "socket - lo - socket, the server's under seccomp", "--network=host")
	if err != nil {
		return nil, err
	}
	link.ListenAddr, link.ServerAddr = localhost, localhost
	return link, nil
}
