package macetest

import (
	"io"
	"net"
	"net/netip"
	"sync"

	"tare/lab"
)

// Echo gives back what it gets, by UDP and TCP, on one port.
type Echo struct {
	Port    uint16
	packets net.PacketConn
	streams net.Listener

	mu    sync.Mutex
	conns []net.Conn
}

// StartEcho starts an echo server in the lab's host, for IPv4 and IPv6. Close ends it.
func StartEcho(l *lab.Lab, host string) (*Echo, error) {
	e := &Echo{}
	err := l.Do(host, func() (err error) {
		if e.packets, err = net.ListenPacket("udp", "[::]:0"); err != nil {
			return err
		}
		e.Port = e.packets.LocalAddr().(*net.UDPAddr).AddrPort().Port()
		e.streams, err = net.Listen("tcp", netip.AddrPortFrom(netip.IPv6Unspecified(), e.Port).String())
		return err
	})
	if err != nil {
		e.Close()
		return nil, err
	}
	go e.echoPackets()
	go e.echoStreams()
	return e, nil
}

func (e *Echo) echoPackets() {
	buffer := make([]byte, maxDatagram)
	for {
		n, from, err := e.packets.ReadFrom(buffer)
		if err != nil {
			return
		}
		_, _ = e.packets.WriteTo(buffer[:n], from)
	}
}

func (e *Echo) echoStreams() {
	for {
		conn, err := e.streams.Accept()
		if err != nil {
			return
		}
		e.mu.Lock()
		e.conns = append(e.conns, conn)
		e.mu.Unlock()
		go func() {
			// Without splice: what is read comes back in the same pieces.
			_, _ = io.CopyBuffer(struct{ io.Writer }{conn}, struct{ io.Reader }{conn}, make([]byte, maxDatagram))
			conn.Close()
		}()
	}
}

// Close ends the server and its connections.
func (e *Echo) Close() {
	if e.packets != nil {
		e.packets.Close()
	}
	if e.streams != nil {
		e.streams.Close()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, conn := range e.conns {
		conn.Close()
	}
}
