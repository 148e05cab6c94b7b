package lab

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

// trafficArgv0 is the name under which a program that uses this package starts itself as a traffic process.
const trafficArgv0 = "tare-lab-traffic"

// Senders and receivers are processes of their own: in the measuring process they would compete with it for the Go
// scheduler, and could be neither pinned nor killed. They are the same executable, so that this works from tests and
// from any program; hence the check before main.
func init() {
	if len(os.Args) == 5 && os.Args[0] == trafficArgv0 {
		if err := traffic(os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// traffic is the whole of a traffic process. It ends after its time whatever happens.
func traffic(role, network, address, bound string) error {
	limit, err := time.ParseDuration(bound)
	if err != nil {
		return err
	}
	time.AfterFunc(limit, func() { os.Exit(0) })
	var mbits int
	if n, _ := fmt.Sscanf(network, pacedUDPFormat, &mbits); n == 1 && mbits > 0 {
		if role == "source" {
			return sourcePacedUDP(address, mbits)
		}
		network = "udp"
	}
	switch role + " " + network {
	case "sink tcp":
		return sinkTCP(address)
	case "sink udp":
		return sinkUDP(address)
	case "source tcp":
		return sourceTCP(address)
	case "source udp":
		return sourceUDP(address)
	}
	return fmt.Errorf("unknown traffic %s %s", role, network)
}

// pacedUDP names a stream of so many Mbit/s.
func pacedUDP(mbits int) string { return fmt.Sprintf(pacedUDPFormat, mbits) }

const (
	pacedUDPFormat = "udp@%d"
	pacedBytes     = 1000 // of each datagram
)

// A sink takes any free port and prints it; the source is started when it is known.
func announce(addr net.Addr) error {
	_, port, err := net.SplitHostPort(addr.String())
	if err == nil {
		_, err = fmt.Println(port)
	}
	return err
}

func sinkTCP(address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	if err := announce(listener.Addr()); err != nil {
		return err
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		go func() {
			buffer := make([]byte, 256<<10)
			_, _ = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{conn}, buffer)
			conn.Close()
		}()
	}
}

func sinkUDP(address string) error {
	conn, err := net.ListenPacket("udp", address)
	if err != nil {
		return err
	}
	if err := announce(conn.LocalAddr()); err != nil {
		return err
	}
	buffer := make([]byte, 64<<10)
	for {
		if _, _, err := conn.ReadFrom(buffer); err != nil {
			return err
		}
	}
}

// sourceTCP sends all it can, in writes large enough for TSO to make its largest segments.
func sourceTCP(address string) error {
	conn, err := net.DialTimeout("tcp", address, 5*time.Second)
	if err != nil {
		return err
	}
	buffer := make([]byte, 64<<10)
	for {
		if _, err := conn.Write(buffer); err != nil {
			return err
		}
	}
}

// sourceUDP sends small datagrams as fast as it can: many packets, of the size of a request to a microservice.
func sourceUDP(address string) error {
	conn, err := net.Dial("udp", address)
	if err != nil {
		return err
	}
	buffer := make([]byte, 200)
	for {
		_, err := conn.Write(buffer)
		if errors.Is(err, net.ErrClosed) {
			return err
		}
		if err != nil {
			time.Sleep(time.Millisecond) // a full queue, or the other side is gone: the bound ends it
		}
	}
}

// sourcePacedUDP sends at a steady rate. What a late wake-up has missed is sent at once: the rate is kept, not the gaps.
func sourcePacedUDP(address string, mbits int) error {
	conn, err := net.Dial("udp", address)
	if err != nil {
		return err
	}
	buffer, began := make([]byte, pacedBytes), time.Now()
	gap := time.Duration(pacedBytes * 8 * 1000 / mbits) // ns: bits over Mbit/s are us
	for sent := time.Duration(0); ; sent++ {
		time.Sleep(time.Until(began.Add(sent * gap)))
		if _, err := conn.Write(buffer); errors.Is(err, net.ErrClosed) {
			return err
		}
	}
}
