package arm

import (
	"context"

	"tare/lab"
)

func init() {
	register(80, Arm{
		Name: "vxlan", Summary: "container to another host over veth, bridge, a VXLAN tunnel and the NIC, as overlays do",
		Check: func(context.Context) error { return needRoot() },
		Up:    upVXLAN,
	})
}

func upVXLAN(ctx context.Context, o Options) (*Link, error) {
	if err := cannotDelay(o); err != nil {
		return nil, err
	}
	l, err := upLab(ctx, lab.Options{Network: lab.NetworkVXLAN}, o)
	if err != nil {
		return nil, err
	}
	link, err := labLink(l, lab.Container(1), lab.Remote, o)
	if err != nil {
		return nil, err
	}
	link.ServerAddr = l.RemoteAddr4()
	link.ListenAddr = link.ServerAddr
	link.Describe["path"] = "eth0 - veth1 - br0 - vxlan0 - nic0 - eth0 - vxlan0"
	return link, nil
}
