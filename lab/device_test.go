package lab

import (
	"strings"
	"testing"
)

func deviceOf(t *testing.T, status Status, host, name string) DeviceStatus {
	t.Helper()
	for _, namespace := range status.Namespaces {
		for _, device := range namespace.Devices {
			if namespace.Host == host && device.Name == name {
				return device
			}
		}
	}
	t.Fatalf("no device %s in %s", name, host)
	return DeviceStatus{}
}

func TestRPSAndOffloads(t *testing.T) {
	plain := up(t, Options{})
	status, err := ReadStatus(plain.Name())
	if err != nil {
		t.Fatal(err)
	}
	if nic := deviceOf(t, status, Host, NIC); strings.Trim(nic.RPS, "0,") != "" || nic.Offloads.TSO != On {
		t.Errorf("the plain lab's NIC has RPS %q and TSO %s, want none and on", nic.RPS, nic.Offloads.TSO)
	}

	l := up(t, Options{RPS: true,
		NICOffloads:       Offloads{TSO: Off, GRO: On},
		ContainerOffloads: Offloads{TSO: Off, GSO: Off},
		RemoteOffloads:    Offloads{TSO: Off, GSO: Off}})
	if status, err = ReadStatus(l.Name()); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		host, device string
		want         Offloads
	}{
		{Host, NIC, Offloads{TSO: Off, GSO: On, GRO: On}},
		{Host, HostVeth(1), Offloads{TSO: On, GSO: On, GRO: Off}},
		{Container(1), ContainerDevice, Offloads{TSO: Off, GSO: Off, GRO: Off}},
		{Remote, RemoteDevice, Offloads{TSO: Off, GSO: Off, GRO: Off}},
	} {
		device := deviceOf(t, status, tt.host, tt.device)
		if device.Offloads != tt.want {
			t.Errorf("offloads of %s in %s are %+v, want %+v", tt.device, tt.host, device.Offloads, tt.want)
		}
		if strings.Trim(device.RPS, "0,") == "" {
			t.Errorf("RPS of %s in %s is %q, want every CPU", tt.device, tt.host, device.RPS)
		}
	}
	run(t, l, "c1", "ping", "-c1", "-W5", l.RemoteAddr4().String())
}

func TestCookiesDiffer(t *testing.T) {
	l := up(t, Options{})
	seen := map[uint64]string{}
	for _, host := range l.Hosts() {
		cookie, err := l.NetNSCookie(host)
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := seen[cookie]; ok || cookie == 0 {
			t.Errorf("cookie %d of %s is also that of %q", cookie, host, other)
		}
		seen[cookie] = host
	}
}
