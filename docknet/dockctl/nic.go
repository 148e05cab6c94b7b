package dockctl

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// An existing interface that becomes a net's NIC is changed in two ways: it receives all multicasts, and with af_xdp it
// has an XDP program. When the daemon ends it has the privilege to undo that no more, and when it is killed it cannot. So
// whoever started it does.

// nicState is how an interface was before.
type nicState struct {
	Interface    string `json:"interface"`
	XDP          bool   `json:"xdp"`          // the daemon has attached a program
	Allmulticast bool   `json:"allmulticast"` // it was switched on for the daemon
}

func (n *Net) nicPath() string { return filepath.Join(n.dir, "nic.json") }

// kernelInterface is the interface in "af_xdp:veth1,mtu=1500", "" for NICs that are not one.
func kernelInterface(nic string) (name string, xdp bool) {
	kind, rest, _ := strings.Cut(nic, ":")
	if kind != "af_xdp" && kind != "af_packet" {
		return "", false
	}
	name, _, _ = strings.Cut(rest, ",")
	return name, kind == "af_xdp"
}

// prepareNIC notes how the interface is, and makes it receive multicasts: neighbour discovery uses one for each pipe.
func (n *Net) prepareNIC(nic string) error {
	n.releaseNIC() // of a daemon that was killed
	name, xdp := kernelInterface(nic)
	if name == "" {
		return nil
	}
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("%w: NIC %s: there is no network interface %q in this network namespace", ErrInvalid, nic, name)
	}
	attrs := link.Attrs()
	if attrs.Xdp != nil && attrs.Xdp.Attached {
		return fmt.Errorf("NIC %s: in use: %s has an XDP program already (id %d)", nic, name, attrs.Xdp.ProgId)
	}
	state := nicState{Interface: name, XDP: xdp, Allmulticast: attrs.RawFlags&unix.IFF_ALLMULTI == 0}
	text, err := json.Marshal(state)
	if err == nil {
		err = os.WriteFile(n.nicPath(), text, 0o600)
	}
	if err == nil && state.Allmulticast {
		err = netlink.LinkSetAllmulticastOn(link)
	}
	if err != nil {
		return fmt.Errorf("preparing NIC %s: %w", nic, err)
	}
	return nil
}

// releaseNIC undoes prepareNIC and what the daemon has done. The interface may be gone by now, which is fine, too.
func (n *Net) releaseNIC() {
	var state nicState
	text, err := os.ReadFile(n.nicPath())
	if err != nil || json.Unmarshal(text, &state) != nil || n.running() {
		return
	}
	if link, err := netlink.LinkByName(state.Interface); err == nil {
		if state.XDP {
			_ = netlink.LinkSetXdpFd(link, -1)
		}
		if state.Allmulticast {
			_ = netlink.LinkSetAllmulticastOff(link)
		}
	}
	os.Remove(n.nicPath())
}
