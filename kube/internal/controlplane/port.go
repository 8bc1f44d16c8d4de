package controlplane

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// Ports are taken from below the range that systems give to clients' ends of connections (32768 and up on Linux), so
// that no one gets ours by chance while a server restarts.
const (
	firstPort = 20000
	numPorts  = 10000
)

// port is a TCP port of the loopback that other tests of ours keep away from: we hold the UDP port of the same number,
// which no server of ours needs, and which the system frees whichever way we end.
type port struct {
	number int
	hold   net.PacketConn
}

// reserve finds a free port. Someone who does not follow the rule of port may still take it before it is used.
func reserve() (port, error) {
	var last error
	for range 200 {
		p := port{number: firstPort + rand.IntN(numPorts)}
		addr := fmt.Sprintf("127.0.0.1:%d", p.number)
		if p.hold, last = net.ListenPacket("udp", addr); last != nil {
			continue
		}
		var l net.Listener
		if l, last = net.Listen("tcp", addr); last == nil {
			l.Close()
			return p, nil
		}
		p.release()
	}
	return port{}, fmt.Errorf("no free port of 200 tried: %w", last)
}

// Port returns a port of the loopback for a server of t, from which other tests of ours keep away until t ends.
func Port(t testing.TB) int {
	t.Helper()
	p, err := reserve()
	if err != nil {
		t.Fatalf("controlplane: %v", err)
	}
	t.Cleanup(p.release)
	return p.number
}

func (p port) release() {
	if p.hold != nil {
		p.hold.Close()
	}
}
