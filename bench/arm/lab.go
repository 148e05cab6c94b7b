package arm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"

	"tare/lab"
)

// upLab makes a lab for this link alone, after those of dead owners are gone.
func upLab(ctx context.Context, options lab.Options, o Options) (*lab.Lab, error) {
	names, err := lab.List()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if ownerGone(name) {
			if _, err := lab.Down(name); err != nil && !errors.Is(err, lab.ErrNotFound) && !errors.Is(err, lab.ErrBusy) {
				return nil, fmt.Errorf("removing what a killed benchmark left: %w", err)
			}
		}
	}
	options.Name = newName()
	l, err := lab.Up(ctx, options)
	if err != nil {
		return nil, err
	}
	for _, host := range l.Hosts() {
		if err := pinSoftirq(l.NetNSPath(host), o.SoftirqCPU); err != nil {
			return nil, errors.Join(err, l.Down())
		}
	}
	return l, nil
}

// labLink joins two hosts of a lab. The caller fills in the addresses and the description.
func labLink(l *lab.Lab, client, server string, o Options) (*Link, error) {
	dir, err := scratch()
	if err != nil {
		return nil, errors.Join(err, l.Down())
	}
	return &Link{
		Client:     netnsPlace{name: "lab's " + client, path: l.NetNSPath(client), cpu: o.ClientCPU},
		Server:     netnsPlace{name: "lab's " + server, path: l.NetNSPath(server), cpu: o.ServerCPU},
		ServerPort: samePort, Dir: dir,
		Describe: map[string]string{"mtu": fmt.Sprint(l.Options().MTU), "softirq": softirqText(o)},
		Close: sync.OnceValue(func() error {
			return errors.Join(l.Down(), os.RemoveAll(dir))
		}),
	}, nil
}

// withoutFirewall takes the lab's rules away, and with them connection tracking, which they ask for.
func withoutFirewall(l *lab.Lab) error {
	return l.Do(lab.Host, func() error {
		conn, err := nftables.New()
		if err != nil {
			return fmt.Errorf("opening nftables: %w", err)
		}
		conn.FlushRuleset()
		if err := conn.Flush(); err != nil {
			return fmt.Errorf("removing the lab's firewall: %w", err)
		}
		for _, name := range []string{"iptables", "ip6tables"} {
			err := os.WriteFile("/proc/sys/net/bridge/bridge-nf-call-"+name, []byte("0"), 0)
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("keeping bridged packets from the firewall: %w", err)
			}
		}
		return nil
	})
}

// delayInLab holds up what leaves by a device of a lab's host.
func delayInLab(l *lab.Lab, host, device string, o Options) error {
	if o.Delay == 0 {
		return nil
	}
	return l.Do(host, func() error {
		nl, err := netlink.NewHandle()
		if err != nil {
			return err
		}
		defer nl.Close()
		return delayOn(nl, device, o.Delay)
	})
}
