package arm

import (
	"context"
	"errors"
)

func init() {
	register(100, Arm{
		Name: "docker-bridge", Summary: "host to a Docker container on Docker's default network",
		Check: docker.check,
		Up:    func(ctx context.Context, o Options) (*Link, error) { return upDefault(ctx, docker, o) },
	})
}

// upDefault puts a server on a runtime's default network.
func upDefault(ctx context.Context, r engine, o Options) (*Link, error) {
	link, err := r.serverInContainer(ctx, o, "the runtime's bridge - veth - eth0")
	if err != nil {
		return nil, err
	}
	if !link.ServerAddr.IsValid() {
		return nil, errors.Join(errors.New("the container has no address on "+string(r)+"'s default network"), link.Close())
	}
	return link, nil
}
