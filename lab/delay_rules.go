package lab

import (
	"fmt"
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
)

// What the rules look for: source and destination in networks for documentation (RFC 5737, RFC 3849), which nobody has.
// Both at once, because that is slow: the kernel has a short cut for what fits 4 bytes.
var (
	nobody4 = append(netip.MustParseAddr("192.0.2.1").AsSlice(), netip.MustParseAddr("192.0.2.2").AsSlice()...)
	nobody6 = netip.MustParseAddr("2001:db8::1").AsSlice()
)

// rulesAtOnce is how many rules go to the kernel in one transaction. It sends each back, and what does not fit a socket's
// buffer is lost: at the default of 208 KiB that happens beyond 150.
const rulesAtOnce = 100

// rules puts a chain of rules before those that forward, for IPv4 and for IPv6. It runs after nat, whose tables it uses.
func (b *builder) rules(count int) error {
	for _, f := range []struct {
		table  nftables.TableFamily
		offset uint32 // of the source address in the header
		nobody []byte
	}{{nftables.TableFamilyIPv4, 12, nobody4}, {nftables.TableFamilyIPv6, 8, nobody6}} {
		conn, err := nftables.New(nftables.WithNetNSFd(int(b.ns[Host])))
		if err != nil {
			return fmt.Errorf("opening nftables in %s: %w", Host, err)
		}
		table := &nftables.Table{Family: f.table, Name: "tare"}
		chain := conn.AddChain(&nftables.Chain{Table: table, Name: "delay", Type: nftables.ChainTypeFilter,
			Hooknum: nftables.ChainHookForward, Priority: nftables.ChainPriorityRef(*nftables.ChainPriorityFilter - 1)})
		for i := range count {
			conn.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: []expr.Any{
				&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: f.offset, Len: uint32(len(f.nobody))},
				&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: f.nobody},
				&expr.Verdict{Kind: expr.VerdictDrop},
			}})
			if i%rulesAtOnce != rulesAtOnce-1 && i != count-1 {
				continue
			}
			if err := conn.Flush(); err != nil {
				return fmt.Errorf("loading nftables rule %d of %d in %s: %w", i+1, count, Host, err)
			}
			if err := b.ctx.Err(); err != nil {
				return err
			}
		}
	}
	return nil
}
