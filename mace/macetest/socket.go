package macetest

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// socket is a connected one.
type socket struct {
	client *Client
	fd     int
	to     unix.Sockaddr
	icmp   bool
	v6     bool
	id     uint16 // of ICMP echo, by a raw socket
	ring   *uring // while a call of io_uring's is used
}

// pattern fills what a request carries behind its number.
const pattern = 0xa5

// Ping sockets are for those groups only that the namespace names, and by default it names none.
const pingGroups = "/proc/sys/net/ipv4/ping_group_range"

func (c *Client) open() (*socket, error) {
	addr := c.Remote.Addr()
	s := &socket{client: c, v6: addr.Is6(), id: uint16(os.Getpid()), fd: 3, to: sockaddr(c.Remote)}
	kinds := map[string][3]int{ // type, protocol, protocol of IPv6
		"udp":  {unix.SOCK_DGRAM, 0, 0},
		"tcp":  {unix.SOCK_STREAM, 0, 0},
		"raw":  {unix.SOCK_RAW, unix.IPPROTO_ICMP, unix.IPPROTO_ICMPV6},
		"ping": {unix.SOCK_DGRAM, unix.IPPROTO_ICMP, unix.IPPROTO_ICMPV6},
	}
	kind, ok := kinds[c.Protocol]
	if !ok {
		return nil, fmt.Errorf("unknown protocol %q", c.Protocol)
	}
	s.icmp = c.Protocol == "raw" || c.Protocol == "ping"
	if c.Protocol == "ping" {
		if err := os.WriteFile(pingGroups, []byte("0 2147483647"), 0); err != nil {
			return nil, err
		}
	}
	family, protocol := unix.AF_INET, kind[1]
	if s.v6 {
		family, protocol = unix.AF_INET6, kind[2]
	}
	var err error
	if !c.Inherited {
		if s.fd, err = unix.Socket(family, kind[0], protocol); err != nil {
			return nil, fmt.Errorf("opening a %s socket: %w", c.Protocol, err)
		}
		if err := SetStamp(s.fd, c.Stamp); err != nil {
			return nil, err
		}
		if err := unix.Connect(s.fd, s.to); err != nil {
			return nil, fmt.Errorf("connecting to %s: %w", c.Remote, err)
		}
	}
	// An answer that does not come fails the test instead of hanging it.
	if err := unix.SetsockoptTimeval(s.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 10}); err != nil {
		return nil, err
	}
	if c.Protocol == "tcp" {
		if err := unix.SetsockoptInt(s.fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
			return nil, err
		}
	}
	if isUring(c.Send) || isUring(c.Receive) {
		if s.ring, err = newUring(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func sockaddr(to netip.AddrPort) unix.Sockaddr {
	if to.Addr().Is6() {
		return &unix.SockaddrInet6{Addr: to.Addr().As16(), Port: int(to.Port())}
	}
	return &unix.SockaddrInet4{Addr: to.Addr().As4(), Port: int(to.Port())}
}

// request builds what is sent: the number, then a pattern; with an ICMP header before it where the kernel adds none.
func (s *socket) request(seq uint64, size int) []byte {
	payload := make([]byte, size)
	for i := range payload {
		payload[i] = pattern
	}
	binary.BigEndian.PutUint64(payload, seq)
	if !s.icmp {
		return payload
	}
	const echoRequest, echoRequest6 = 8, 128
	packet := make([]byte, 8, 8+size)
	packet[0] = echoRequest
	if s.v6 {
		packet[0] = echoRequest6
	}
	binary.BigEndian.PutUint16(packet[4:], s.id)
	binary.BigEndian.PutUint16(packet[6:], uint16(seq))
	packet = append(packet, payload...)
	if !s.v6 { // the kernel does it for ICMPv6
		binary.BigEndian.PutUint16(packet[2:], checksum(packet))
	}
	return packet
}

// checksum is that of RFC 1071.
func checksum(b []byte) uint16 {
	var sum uint32
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	if len(b)%2 == 1 {
		sum += uint32(b[len(b)-1]) << 8
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// seqOf finds the number in what was received; false: it is no answer to this socket.
func (s *socket) seqOf(b []byte) (uint64, bool) {
	if s.icmp {
		const echoReply, echoReply6 = 0, 129
		if s.client.Protocol == "raw" && !s.v6 {
			b = b[min(20, len(b)):] // raw IPv4 sockets give the IP header, too
		}
		if len(b) < 16 || b[0] != echoReply && b[0] != echoReply6 {
			return 0, false
		}
		if s.client.Protocol == "raw" && binary.BigEndian.Uint16(b[4:]) != s.id {
			return 0, false
		}
		b = b[8:]
	}
	if len(b) < 8 {
		return 0, false
	}
	return binary.BigEndian.Uint64(b), true
}

func (s *socket) send(requests [][]byte) error {
	if s.client.Send == "sendmmsg" {
		return sendmmsg(s.fd, requests)
	}
	call, ok := Senders[s.client.Send]
	if !ok {
		return fmt.Errorf("there is no such call")
	}
	for _, request := range requests {
		if err := call(s, request); err != nil {
			return err
		}
	}
	return nil
}

// receive reads n answers.
func (s *socket) receive(n int) ([]Reply, error) {
	var replies []Reply
	for len(replies) < n {
		var got []datagram
		var err error
		switch {
		case s.client.Protocol == "tcp":
			got, err = s.receiveStream()
		case s.client.Receive == "recvmmsg":
			got, err = recvmmsg(s.fd, n-len(replies))
		default:
			got, err = s.receiveOne()
		}
		if err != nil {
			return nil, err
		}
		for _, d := range got {
			if seq, ok := s.seqOf(d.payload); ok {
				replies = append(replies, Reply{Seq: seq, StampNS: d.stampNS})
			}
		}
	}
	return replies, nil
}
