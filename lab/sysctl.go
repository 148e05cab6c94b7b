package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

type sysctl struct {
	name, value string
	// optional ones belong to a part that a kernel may lack, or were named after the setting became the default.
	optional bool
}

// Set before any device exists: devices copy "default" when they are made.
var sysctlsOfAll = []sysctl{
	{name: "ipv6/conf/all/disable_ipv6", value: "0"},
	{name: "ipv6/conf/default/disable_ipv6", value: "0"},
	// No duplicate address detection, solicitations or advertisements: they delay the first packet and appear in traces.
	{name: "ipv6/conf/default/accept_dad", value: "0"},
	{name: "ipv6/conf/default/accept_ra", value: "0"},
	{name: "ipv6/conf/default/router_solicitations", value: "0"},
	// Loose, what systemd's 50-default.conf sets on most distributions; else it would depend on the root namespace.
	{name: "ipv4/conf/all/rp_filter", value: "0"},
	{name: "ipv4/conf/default/rp_filter", value: "2"},
}

var sysctlsOfHost = []sysctl{
	{name: "ipv4/ip_forward", value: "1"},
	{name: "ipv6/conf/all/forwarding", value: "1"},
	{name: "ipv6/conf/default/forwarding", value: "1"},
	// Docker switches these on: bridged packets visit the firewall too, and it costs time. Of the namespace since 5.3.
	{name: "bridge/bridge-nf-call-iptables", value: "1", optional: true},
	{name: "bridge/bridge-nf-call-ip6tables", value: "1", optional: true},
}

// quietSysctls sets what a namespace of the lab needs, in the namespace of the calling thread.
func quietSysctls(forwards bool) error {
	list := sysctlsOfAll
	if forwards {
		list = append(append([]sysctl{}, list...), sysctlsOfHost...)
	}
	for _, s := range list {
		err := os.WriteFile(filepath.Join("/proc/sys/net", s.name), []byte(s.value), 0)
		if s.optional && errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("setting net/%s to %s: %w", s.name, s.value, err)
		}
	}
	return nil
}
