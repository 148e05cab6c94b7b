package lab

import (
	"fmt"
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// family is what differs between the rules for IPv4 and IPv6.
type family struct {
	table        nftables.TableFamily
	nfproto      uint32
	sourceOffset uint32 // of the source address in the header
	containers   netip.Prefix
	first        netip.Addr // container 1
}

// nat writes the firewall of the host as Docker writes it, in the same order, so that a packet meets the same work.
func (b *builder) nat() error {
	conn, err := nftables.New(nftables.WithNetNSFd(int(b.ns[Host])))
	if err != nil {
		return fmt.Errorf("opening nftables in %s: %w", Host, err)
	}
	for _, f := range []family{
		{nftables.TableFamilyIPv4, unix.NFPROTO_IPV4, 12, containerNet4, b.lab.ContainerAddr4(1)},
		{nftables.TableFamilyIPv6, unix.NFPROTO_IPV6, 8, containerNet6, b.lab.ContainerAddr6(1)},
	} {
		f.rules(conn, b.lab.options.Publish)
	}
	if err := conn.Flush(); err != nil {
		return fmt.Errorf("loading the nftables rules in %s (needs nf_tables with nat, masquerade and conntrack): %w", Host, err)
	}
	return nil
}

func (f family) rules(conn *nftables.Conn, publish bool) {
	table := conn.AddTable(&nftables.Table{Family: f.table, Name: "tare"})
	postrouting := conn.AddChain(&nftables.Chain{Table: table, Name: "postrouting", Type: nftables.ChainTypeNAT,
		Hooknum: nftables.ChainHookPostrouting, Priority: nftables.ChainPriorityNATSource})
	drop := nftables.ChainPolicyDrop
	forward := conn.AddChain(&nftables.Chain{Table: table, Name: "forward", Type: nftables.ChainTypeFilter,
		Hooknum: nftables.ChainHookForward, Priority: nftables.ChainPriorityFilter, Policy: &drop})
	add := func(chain *nftables.Chain, parts ...[]expr.Any) {
		var all []expr.Any
		for _, part := range parts {
			all = append(all, part...)
		}
		conn.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: all})
	}
	accept := []expr.Any{&expr.Verdict{Kind: expr.VerdictAccept}}

	add(postrouting, f.sourceIn(), device(expr.MetaKeyOIFNAME, expr.CmpOpNeq, Bridge), []expr.Any{&expr.Masq{}})

	into, notInto := device(expr.MetaKeyOIFNAME, expr.CmpOpEq, Bridge), device(expr.MetaKeyOIFNAME, expr.CmpOpNeq, Bridge)
	from := device(expr.MetaKeyIIFNAME, expr.CmpOpEq, Bridge)
	add(forward, into, establishedOrRelated(), accept)
	if publish {
		add(forward, device(expr.MetaKeyIIFNAME, expr.CmpOpNeq, Bridge), into, f.destinationIs(f.first), tcpTo(PublishedTarget), accept)
	}
	add(forward, from, notInto, accept)
	add(forward, from, into, accept)

	if publish {
		prerouting := conn.AddChain(&nftables.Chain{Table: table, Name: "prerouting", Type: nftables.ChainTypeNAT,
			Hooknum: nftables.ChainHookPrerouting, Priority: nftables.ChainPriorityNATDest})
		add(prerouting, device(expr.MetaKeyIIFNAME, expr.CmpOpEq, NIC), tcpTo(PublishedPort), []expr.Any{
			&expr.Immediate{Register: 1, Data: f.first.AsSlice()},
			&expr.Immediate{Register: 2, Data: binaryutil.BigEndian.PutUint16(PublishedTarget)},
			&expr.NAT{Type: expr.NATTypeDestNAT, Family: f.nfproto, RegAddrMin: 1, RegProtoMin: 2, Specified: true},
		})
	}
}

// sourceIn matches packets from the containers' network. Its prefix ends on a byte, so no mask is needed.
func (f family) sourceIn() []expr.Any {
	bytes := f.containers.Bits() / 8
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: f.sourceOffset, Len: uint32(bytes)},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: f.containers.Addr().AsSlice()[:bytes]},
	}
}

// destinationIs matches packets to one address, which follows the source address in the header.
func (f family) destinationIs(addr netip.Addr) []expr.Any {
	bytes := addr.AsSlice()
	length := uint32(len(bytes))
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: f.sourceOffset + length, Len: length},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: bytes},
	}
}

// device matches the name of the device that a packet comes in by or goes out by.
func device(key expr.MetaKey, op expr.CmpOp, name string) []expr.Any {
	padded := make([]byte, unix.IFNAMSIZ)
	copy(padded, name)
	return []expr.Any{&expr.Meta{Key: key, Register: 1}, &expr.Cmp{Op: op, Register: 1, Data: padded}}
}

func tcpTo(port uint16) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{unix.IPPROTO_TCP}},
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binaryutil.BigEndian.PutUint16(port)},
	}
}

func establishedOrRelated() []expr.Any {
	return []expr.Any{
		&expr.Ct{Key: expr.CtKeySTATE, Register: 1},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Xor: make([]byte, 4),
			Mask: binaryutil.NativeEndian.PutUint32(expr.CtStateBitESTABLISHED | expr.CtStateBitRELATED)},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: make([]byte, 4)},
	}
}
