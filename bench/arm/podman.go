package arm

import "context"

func init() {
	register(130, Arm{
		Name: "podman", Summary: "host to a podman container on podman's default network",
		Check: func(ctx context.Context) error {
			if err := needRoot(); err != nil {
				return err
			}
			return podman.check(ctx)
		},
		Up: func(ctx context.Context, o Options) (*Link, error) { return upDefault(ctx, podman, o) },
	})
}
