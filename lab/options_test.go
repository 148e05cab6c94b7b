package lab

import (
	"errors"
	"strings"
	"testing"
)

func TestOptionsCheck(t *testing.T) {
	for _, tt := range []struct {
		name    string
		options Options
		wantErr string // part of the text; "" for none
	}{
		{"zero value", Options{}, ""},
		{"everything", Options{Name: "a-1", Containers: 64, Network: NetworkVXLAN, MTU: 9000, RPS: true, Publish: true, NICOffloads: Offloads{TSO: Off}}, ""},
		{"path in the name", Options{Name: "../etc"}, `"../etc"`},
		{"capital in the name", Options{Name: "Lab"}, `"Lab"`},
		{"name begins with a dash", Options{Name: "-lab"}, `"-lab"`},
		{"long name", Options{Name: strings.Repeat("a", 33)}, "1 to 32"},
		{"too many containers", Options{Containers: 65}, "65 containers"},
		{"fewer than none", Options{Containers: -1}, "-1 containers"},
		{"unknown network", Options{Network: "ipvlan"}, `"ipvlan"`},
		{"MTU below IPv6's", Options{MTU: 1279}, "1280 to 65535"},
		{"MTU below IPv6's in the tunnel", Options{MTU: 1329, Network: NetworkVXLAN}, "1330 to 65535"},
		{"MTU above veth's", Options{MTU: 65536}, "65536"},
		{"macvlan has nothing to publish", Options{Network: NetworkMacvlan, Publish: true}, "publish"},
		{"offload", Options{RemoteOffloads: Offloads{GRO: "maybe"}}, `"maybe"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.options.Check()
			if tt.wantErr == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), tt.wantErr) {
				t.Errorf("got %v, want an ErrInvalid with %q", err, tt.wantErr)
			}
		})
	}
}

func TestBackgroundCheck(t *testing.T) {
	for _, tt := range []struct {
		name       string
		background Background
		containers int
		wantErr    string
	}{
		{"floods", Background{Floods: 8}, 1, ""},
		{"local", Background{LocalUDP: true}, 2, ""},
		{"nothing", Background{}, 2, "no background traffic"},
		{"alone", Background{LocalTCP: true}, 1, "2 of them"},
		{"negative", Background{Floods: -1}, 1, "-1 flood pings"},
		{"for ever", Background{Floods: 1, For: MaxLoadTime + 1}, 1, "up to 1h"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.background.Check(tt.containers)
			if (err == nil) != (tt.wantErr == "") || err != nil && !strings.Contains(err.Error(), tt.wantErr) {
				t.Errorf("got %v, want %q", err, tt.wantErr)
			}
		})
	}
}

func TestSenderOf(t *testing.T) {
	for containers, want := range map[int][4]int{1: {1, 1, 1, 1}, 2: {2, 2, 2, 2}, 3: {2, 3, 2, 3}, 4: {2, 3, 4, 2}} {
		for i, w := range want {
			if got := senderOf(i, containers); got != w {
				t.Errorf("sender %d of %d containers is c%d, want c%d", i, containers, got, w)
			}
		}
	}
}

func TestParseToggle(t *testing.T) {
	for text, want := range map[string]Toggle{"on": On, "TRUE": On, "1": On, "off": Off, "false": Off, "0": Off, "": Unchanged} {
		if got, err := ParseToggle(text); err != nil || got != want {
			t.Errorf("ParseToggle(%q) = %q, %v; want %q", text, got, err, want)
		}
	}
	if _, err := ParseToggle("perhaps"); !errors.Is(err, ErrInvalid) {
		t.Errorf("ParseToggle(perhaps): %v, want an ErrInvalid", err)
	}
}

func TestCPUMask(t *testing.T) {
	for _, tt := range []struct{ list, want string }{
		{"0", "1"}, {"0-1", "3"}, {"0-3,8", "10f"}, {"32", "1,00000000"}, {"0-63", "ffffffff,ffffffff"}, {"0,95", "80000000,00000000,00000001"},
	} {
		cpus, err := parseCPUList(tt.list)
		if err != nil {
			t.Fatal(err)
		}
		if got := cpuMask(cpus); got != tt.want {
			t.Errorf("mask of %q is %q, want %q", tt.list, got, tt.want)
		}
	}
	for _, bad := range []string{"", "x", "3-1", "1-", "-1", "0,,1"} {
		if cpus, err := parseCPUList(bad); err == nil {
			t.Errorf("parseCPUList(%q) = %v, want an error", bad, cpus)
		}
	}
}

// Names must tell labs apart whatever they are called.
func TestNamespacesOfSimilarLabs(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{"a", "a-c1", "a-host", "a-c1-host", "a-remote"} {
		for _, host := range []string{Host, Remote, "c1", "c11"} {
			ns := netnsName(name, host)
			if other, ok := seen[ns]; ok {
				t.Errorf("%s is a namespace of lab %s and of lab %s", ns, name, other)
			}
			seen[ns] = name
		}
	}
}
