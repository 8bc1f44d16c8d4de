package access

import (
	"container/list"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
)

// EachAddress is how many connections over the network one address may have: of IPv6 that of a network of 64 bits,
// which one machine may have all of.
const EachAddress = 32

// gate is a listener that lets in so many connections, of each who asks no more than his share. One that is too many
// takes the place of the one of the same who asks that has waited longest for a request, or is closed.
type gate struct {
	net.Listener
	most, each int
	key        func(net.Conn) string // who asks

	mu   sync.Mutex
	open int
	by   map[string]*party
}

// party is who asks, with his connections.
type party struct {
	open int
	idle list.List // of *held: those without a request, the longest first
}

// held is a connection that was let in.
type held struct {
	net.Conn
	gate *gate
	who  *party
	key  string
	idle *list.Element // nil = it has a request
	gone bool
}

// newGate returns the gate of a listener.
func newGate(l net.Listener, most, each int, key func(net.Conn) string) *gate {
	return &gate{Listener: l, most: most, each: each, key: key, by: make(map[string]*party)}
}

// Accept returns the next connection that is let in.
func (g *gate) Accept() (net.Conn, error) {
	for {
		c, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if h := g.admit(c, g.key(c)); h != nil {
			return h, nil
		}
		_ = c.Close()
	}
}

// admit makes room for a connection, if there can be any; nil = there is none.
func (g *gate) admit(c net.Conn, key string) *held {
	g.mu.Lock()
	defer g.mu.Unlock()
	who := g.by[key]
	if who == nil {
		who = &party{}
	}
	switch {
	case who.open < g.each && g.open < g.most:
	case who.open < g.each && g.evict(g.largest()):
	case who.open > 0 && g.evict(who):
	default:
		return nil
	}
	g.by[key] = who
	g.open++
	who.open++
	h := &held{Conn: c, gate: g, who: who, key: key}
	h.idle = who.idle.PushBack(h)
	return h
}

// largest returns who has the most connections.
func (g *gate) largest() (most *party) {
	for _, p := range g.by {
		if most == nil || p.open > most.open {
			most = p
		}
	}
	return most
}

// looks is how many connections are looked at for one that may go.
const looks = 16

// evict closes a connection of someone that waits for a request, and that none has reached yet.
func (g *gate) evict(who *party) bool {
	if who == nil {
		return false
	}
	for range min(who.idle.Len(), looks) {
		h := who.idle.Front().Value.(*held)
		if pending(h.Conn) {
			who.idle.MoveToBack(h.idle)
			continue
		}
		g.remove(h)
		_ = h.Conn.Close()
		return true
	}
	return false
}

// remove forgets a connection.
func (g *gate) remove(h *held) {
	if h.gone {
		return
	}
	h.gone = true
	if h.idle != nil {
		h.who.idle.Remove(h.idle)
	}
	g.open--
	if h.who.open--; h.who.open == 0 {
		delete(g.by, h.key)
	}
}

// Close closes the connection and makes room for another.
func (h *held) Close() error {
	h.gate.mu.Lock()
	h.gate.remove(h)
	h.gate.mu.Unlock()
	return h.Conn.Close()
}

// CloseWrite says that nothing more will be sent; a server does so before it closes a connection whose request it has
// not read, so that its answer is read all the same.
func (h *held) CloseWrite() error {
	if c, ok := h.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return nil
}

// noteState notes whether a connection has a request. It is the server's ConnState.
func noteState(c net.Conn, s http.ConnState) {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	h, ok := c.(*held)
	if !ok {
		return
	}
	h.gate.mu.Lock()
	defer h.gate.mu.Unlock()
	switch {
	case h.gone:
	case s == http.StateActive && h.idle != nil:
		h.who.idle.Remove(h.idle)
		h.idle = nil
	case s == http.StateIdle && h.idle == nil:
		h.idle = h.who.idle.PushBack(h)
	}
}

// userOf names who is at the other end of a unix socket.
func userOf(c net.Conn) string {
	p := peerAt(c)
	if p.Err != nil {
		return "unknown"
	}
	return strconv.FormatUint(uint64(p.UID), 10)
}

// addressOf names the address of a connection over the network.
func addressOf(c net.Conn) string {
	at, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil {
		return c.RemoteAddr().String()
	}
	addr := at.Addr().Unmap()
	if addr.Is6() {
		const network = 64
		if p, err := addr.Prefix(network); err == nil {
			return p.String()
		}
	}
	return addr.String()
}
