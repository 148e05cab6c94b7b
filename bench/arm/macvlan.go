package arm

import (
	"context"

	"tare/lab"
)

func init() {
	register(70, Arm{
		Name: "macvlan", Summary: "container to container, each with a macvlan device in bridge mode on one NIC",
		Check: func(context.Context) error { return needRoot() },
		Up:    upMacvlan,
	})
}

func upMacvlan(ctx context.Context, o Options) (*Link, error) {
	if err := cannotDelay(o); err != nil {
		return nil, err
	}
	l, err := upLab(ctx, lab.Options{Network: lab.NetworkMacvlan, Containers: 2}, o)
	if err != nil {
		return nil, err
	}
	link, err := labLink(l, lab.Container(1), lab.Container(2), o)
	if err != nil {
		return nil, err
	}
	link.ServerAddr = l.ContainerAddr4(2)
	link.ListenAddr = link.ServerAddr
	link.Describe["path"] = "eth0 (macvlan) - nic0's macvlan port - eth0 (macvlan)"
	return link, nil
}
