package lab

import "fmt"

// nicCable joins the NIC with the remote host's device, by a veth pair or by a forwarder.
func (b *builder) nicCable() error {
	mac, remoteMAC, mtu := macOf(b.lab.HostAddr4()), macOf(b.lab.RemoteNICAddr4()), b.lab.options.MTU
	d, ok := b.lab.options.forwarderOn(NIC)
	if !ok {
		return b.veth(NIC, Remote, RemoteDevice, mac, remoteMAC, mtu)
	}
	if err := b.tap(Host, NIC, mac, mtu); err != nil {
		return err
	}
	if err := b.tap(Remote, RemoteDevice, remoteMAC, mtu); err != nil {
		return err
	}
	return b.resident(d)
}

// port returns the device that is the bridge's port for a container's veth: the veth itself, or that of the forwarder
// which is started here.
func (b *builder) port(veth string) (string, error) {
	d, ok := b.lab.options.forwarderOn(veth)
	if !ok {
		return veth, nil
	}
	// Nobody answers here: what comes in by the veth is for the forwarder alone.
	link, err := b.nl[Host].LinkByName(veth)
	if err != nil {
		return "", fmt.Errorf("looking for %s in %s: %w", veth, Host, err)
	}
	if err := b.nl[Host].LinkSetARPOff(link); err != nil {
		return "", fmt.Errorf("switching ARP off on %s in %s: %w", veth, Host, err)
	}
	if err := b.up(Host, veth); err != nil {
		return "", err
	}
	port := portOf(veth)
	if err := b.tap(Host, port, nil, b.lab.options.containerMTU()); err != nil {
		return "", err
	}
	return port, b.resident(d)
}

// delays puts in all delays but forwarders, which are there already.
func (b *builder) delays() error {
	for _, d := range b.lab.options.Delays {
		var err error
		switch d.By {
		case DelayByNetem, DelayByTBF:
			err = b.qdisc(d)
		case DelayByBusyCPU:
			err = b.busyCPU(d)
		case DelayByRules:
			err = b.rules(d.Rules)
		}
		if err != nil {
			return fmt.Errorf("delay %s: %w", d, err)
		}
		if err := b.ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}
