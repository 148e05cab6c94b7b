package mace

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestBuiltinPathsRoundTrip(t *testing.T) {
	if want := []string{"bare-metal", "inner-dev", "max-dev", "syscalls", "wire"}; !slices.Equal(PathNames(), want) {
		t.Errorf("the built-in paths are %v, want %v", PathNames(), want)
	}
	for _, name := range PathNames() {
		path, err := ParsePath(" " + name + "\n")
		if err != nil {
			t.Fatal(err)
		}
		if path.Name != name {
			t.Errorf("%s is named %q", name, path.Name)
		}
		again, err := ParsePath(path.String())
		if err != nil {
			t.Fatalf("%s: its own text %q: %v", name, path, err)
		}
		if again.Name != path.String() || again.String() != path.String() {
			t.Errorf("%s becomes %q, named %q", name, again, again.Name)
		}
		if again.plan() != path.plan() {
			t.Errorf("%s has the plan %+v, and its text %+v", name, path.plan(), again.plan())
		}
	}
}

func TestParsePathText(t *testing.T) {
	const canonical = "egress=container:net_dev_queue,nic:net_dev_xmit ingress=nic:netif_rx|netif_receive_skb,sys_exit"
	for _, text := range []string{
		canonical,
		"# from the container to the wire\negress=container:net_dev_queue,nic:net_dev_xmit # out\n\tingress=nic:netif_receive_skb|netif_rx,sys_exit",
		"ingress=nic:netif_rx|netif_receive_skb,sys_exit  egress=container:net_dev_queue,nic:net_dev_xmit",
	} {
		path, err := ParsePath(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		} else if path.String() != canonical {
			t.Errorf("%q becomes %q", text, path)
		}
	}
}

func TestParsePathErrors(t *testing.T) {
	const egress, ingress = "egress=container:net_dev_queue,nic:net_dev_queue", "ingress=nic:netif_receive_skb,container:netif_receive_skb"
	for _, tt := range []struct{ name, text, want string }{
		{"empty", "", `event path "": not one of bare-metal, inner-dev, max-dev, syscalls, wire, nor egress=POINT,POINT ingress=POINT,POINT`},
		{"unknown name", "inner", `event path "inner": not one of bare-metal, inner-dev`},
		{"one direction", egress, "event path: both egress= and ingress= are needed"},
		{"only a comment", "# egress=a,b", "both egress= and ingress= are needed"},
		{"one point", "egress=sys_enter " + ingress, `"egress=sys_enter" is not KEY=POINT,POINT`},
		{"no key", "sys_enter,nic:net_dev_queue " + ingress, `"sys_enter,nic:net_dev_queue" is not KEY=POINT,POINT`},
		{"unknown key", "outgress=sys_enter,nic:net_dev_queue " + ingress, `"outgress" is none of egress, ingress, stamped`},
		{"twice", egress + " " + egress + " " + ingress, "egress is given twice"},
		{"unknown event", "egress=container:net_dev_que,nic:net_dev_queue " + ingress, `unknown event "net_dev_que"; known: napi_gro_frags_entry,`},
		{"empty event", "egress=container:,nic:net_dev_queue " + ingress, `unknown event ""`},
		{"three points", "egress=sys_enter,nic:net_dev_queue,nic:net_dev_xmit " + ingress, `unknown event "net_dev_queue,nic:net_dev_xmit"`},
		{"unknown role", "egress=pod:net_dev_queue,nic:net_dev_queue " + ingress, `"pod" in "pod:net_dev_queue" is neither container nor nic`},
		{"wrong way round", "egress=nic:net_dev_queue,container:net_dev_queue " + ingress, "egress inner end nic:net_dev_queue must be in container:"},
		{"freed skb begins", "egress=container:net_dev_xmit,nic:net_dev_xmit " + ingress, "must be in container:net_dev_queue|net_dev_start_xmit"},
		{"two events where one is meant", "egress=container:net_dev_queue|net_dev_start_xmit,nic:net_dev_xmit " + ingress, "egress inner end"},
		{"a call has no device", "egress=container:sys_enter,nic:net_dev_xmit " + ingress, "or egress inner end container:sys_enter must be in sys_enter"},
		{"egress event in ingress", egress + " ingress=nic:net_dev_queue,sys_exit", "ingress outer end nic:net_dev_queue must be in nic:"},
		{"ends at a call's start", egress + " ingress=nic:netif_rx,sys_enter", "ingress inner end sys_enter must be in"},
		{"stamped not at a stamp", egress + " " + ingress + " stamped=nic:stamp,container:netif_rx", "stamped inner end container:netif_rx must be in container:stamp"},
		{"stamps of hardware", "hw", `"hw": there is none: the kernel tells the hardware's stamps of sent packets to the sending socket alone`},
		{"stamped begins elsewhere", egress + " " + ingress + " stamped=nic:netif_rx,container:stamp", "stamped must begin where ingress does, or at nic:stamp"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path, err := ParsePath(tt.text)
			if err == nil {
				t.Fatalf("no error but %q", path)
			}
			if !errors.Is(err, ErrPath) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %q, want %q in it", err, tt.want)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("an error of more than one line: %q", err)
			}
		})
	}
}

func TestPlans(t *testing.T) {
	for _, tt := range []struct {
		path   string
		want   plan
		events Event
		stamps bool
	}{
		{"inner-dev", plan{egressStart: NetDevStartXmit, egressEnd: NetDevStartXmit, ingressStart: NetifReceiveSKB,
			ingressEnd: NetifReceiveSKB, ingressInner: NetifReceiveSKB},
			NetDevStartXmit | NetifReceiveSKB, false},
		{"max-dev", plan{egressStart: NetDevQueue, egressEnd: NetDevXmit,
			ingressStart: NAPIGROReceive | NAPIGROFrags | NetifRx | NetifReceiveSKB, ingressEnd: NetifReceiveSKB, ingressInner: NetifReceiveSKB},
			NetDevQueue | NetDevStartXmit | NetDevXmit | NAPIGROReceive | NAPIGROFrags | NetifRx | NetifReceiveSKB, false},
		{"syscalls", plan{egressStart: NetDevQueue, egressFromSyscall: true, egressEnd: NetDevXmit, ingressStart: NetifReceiveSKB,
			ingressEnd: NetifReceiveSKB, ingressInner: SysExit, delivery: SysExit},
			NetDevQueue | NetDevStartXmit | NetDevXmit | NetifReceiveSKB | SKBCopy | SysEnter | SysExit, false},
		{"bare-metal", plan{egressStart: NetDevQueue, egressEnd: NetDevQueue, ingressStart: NetifReceiveSKB, ingressEnd: NetifReceiveSKB,
			ingressInner: NetifReceiveSKB, bySocket: true, stampPair: true, delivery: SKBCopy},
			NetDevQueue | NetifReceiveSKB | SKBCopy, true},
		{"wire", plan{egressStart: NetDevQueue, egressFromSyscall: true, egressEnd: NetDevStartXmit,
			ingressStart: NAPIGROReceive | NAPIGROFrags | NetifReceiveSKB, ingressOuterStamp: true, ingressEnd: NetifReceiveSKB,
			ingressInner: SysExit, bySocket: true, delivery: SysExit},
			NetDevQueue | NetDevStartXmit | NAPIGROReceive | NAPIGROFrags | NetifReceiveSKB | SKBCopy | SysEnter | SysExit, true},
		{"egress=sys_enter,nic:net_dev_queue ingress=nic:netif_rx,container:netif_rx",
			plan{egressStart: NetDevQueue, egressFromSyscall: true, egressEnd: NetDevQueue, ingressStart: NetifRx, ingressEnd: NetifRx, ingressInner: NetifRx},
			NetDevQueue | NetifRx | SysEnter | SysExit, false},
		{"egress=container:net_dev_queue,nic:net_dev_queue ingress=nic:stamp,container:stamp",
			plan{egressStart: NetDevQueue, egressEnd: NetDevQueue, ingressStart: NetifReceiveSKB, ingressOuterStamp: true,
				ingressEnd: NetifReceiveSKB, ingressInner: Stamp},
			NetDevQueue | NetifReceiveSKB, true},
	} {
		t.Run(tt.path, func(t *testing.T) {
			path, err := ParsePath(tt.path)
			if err != nil {
				t.Fatal(err)
			}
			if got := path.plan(); got != tt.want {
				t.Errorf("plan\n%+v, want\n%+v", got, tt.want)
			}
			if got := path.plan().tracepoints(); got != tt.events {
				t.Errorf("programs at %s, want %s", got, tt.events)
			}
			if got := path.usesStamp(); got != tt.stamps {
				t.Errorf("uses stamps %t, want %t", got, tt.stamps)
			}
		})
	}
}
