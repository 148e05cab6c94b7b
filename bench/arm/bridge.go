package arm

import (
	"context"
	"errors"

	"tare/lab"
)

func init() {
	register(40, Arm{
		Name: "bridge", Summary: "host to container over veth and bridge, as Docker builds it but without a firewall",
		Check: func(context.Context) error { return needRoot() },
		Up:    func(ctx context.Context, o Options) (*Link, error) { return upBridge(ctx, o, false) },
	})
	register(50, Arm{
		Name: "bridge-nat", Summary: "the same with Docker's firewall: nftables, NAT and connection tracking",
		Check: func(context.Context) error { return needRoot() },
		Up:    func(ctx context.Context, o Options) (*Link, error) { return upBridge(ctx, o, true) },
	})
}

func upBridge(ctx context.Context, o Options, firewall bool) (*Link, error) {
	l, err := upLab(ctx, lab.Options{}, o)
	if err != nil {
		return nil, err
	}
	if !firewall {
		err = withoutFirewall(l)
	}
	if err == nil {
		err = delayInLab(l, lab.Host, lab.HostVeth(1), o)
	}
	if err != nil {
		return nil, errors.Join(err, l.Down())
	}
	link, err := labLink(l, lab.Host, lab.Container(1), o)
	if err != nil {
		return nil, err
	}
	link.ServerAddr = l.ContainerAddr4(1)
	link.ListenAddr = link.ServerAddr
	link.Describe["path"] = "br0 - veth1 - eth0"
	link.Describe["firewall"] = "none"
	if firewall {
		link.Describe["firewall"] = "nftables as Docker writes them, connection tracking"
	}
	return link, nil
}
