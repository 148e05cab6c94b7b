package eval

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"tare/container"
	"tare/lab"
	"tare/mace"
)

// bed is the lab that one part measures in: container c1 is the measured one.
type bed struct {
	lab *lab.Lab
	nic mace.Device
	// packets of one flood, where a part floods
	packets int
	c1      container.Target
}

// labName carries the process, so that the next evaluation removes what a killed one left.
func labName(part Part) string { return fmt.Sprintf("eval-%d-%s", os.Getpid(), part) }

// removeStale takes away the labs of evaluations that were killed.
func removeStale() {
	names, _ := lab.List()
	for _, name := range names {
		var pid int
		var part string
		if _, err := fmt.Sscanf(name, "eval-%d-%s", &pid, &part); err == nil && isDead(pid) {
			_, _ = lab.Down(name)
		}
	}
	removeStaleInstances()
}

func isDead(pid int) bool {
	_, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
	return errors.Is(err, os.ErrNotExist)
}

// newBed makes a lab with so many containers. The caller closes it.
func newBed(ctx context.Context, part Part, containers int) (_ *bed, err error) {
	b := &bed{}
	if b.lab, err = lab.Up(ctx, lab.Options{Name: labName(part), Containers: containers}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	b.nic.Name = lab.NIC
	if b.nic.NetNSCookie, err = b.lab.NetNSCookie(lab.Host); err != nil {
		return nil, err
	}
	err = b.lab.Do(lab.Host, func() error {
		device, err := net.InterfaceByName(lab.NIC)
		if err == nil {
			b.nic.Index = device.Index
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("looking for %s: %w", lab.NIC, err)
	}
	b.c1, err = container.FromNetNS(b.lab.NetNSPath(lab.Container(1)))
	return b, err
}

func (b *bed) close() { _ = b.lab.Down() }

// remote is the address that everything is sent to.
func (b *bed) remote() string { return b.lab.RemoteAddr4().String() }
