package access

import (
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

// through returns a gate of a socket that takes each who asks for whom he says he is, and what connects as someone.
func through(t *testing.T, most, each int) (*gate, func(who string) (client, server net.Conn)) {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	var who atomic.Pointer[string]
	g := newGate(l, most, each, func(net.Conn) string { return *who.Load() })
	t.Cleanup(func() { _ = g.Close() })
	accepted := make(chan net.Conn)
	go func() {
		for {
			c, err := g.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	return g, func(as string) (client, server net.Conn) {
		who.Store(&as)
		client, err := net.Dial("unix", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() })
		gone := make(chan struct{})
		go func() { _, _ = client.Read(make([]byte, 1)); close(gone) }() // refused: it is closed
		select {
		case server = <-accepted:
			return client, server
		case <-gone:
			return client, nil
		}
	}
}

// Ensure that one who asks leaves room to others, that a new connection of his takes the place of one of his that waits
// for a request, but not of one that has a request or is about to, and that what is closed makes room.
func TestGate(t *testing.T) {
	g, connect := through(t, 8, 6)
	var clients, servers []net.Conn
	for range 6 {
		c, s := connect("ann")
		clients, servers = append(clients, c), append(servers, s)
		noteState(s, http.StateActive)
	}
	if _, s := connect("ann"); s != nil {
		t.Error("a seventh of ann came in while six have requests")
	}
	_, b := connect("bob")
	_, _ = connect("bob")
	if g.open != 8 {
		t.Errorf("%d are open, want 8", g.open)
	}
	if _, s := connect("eve"); s != nil {
		t.Error("a ninth came in")
	}
	_, _ = connect("bob") // in place of his first
	if _, err := b.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("bob's first: %v, want it closed", err)
	}
	noteState(servers[2], http.StateIdle)
	noteState(servers[4], http.StateIdle)
	if _, err := clients[2].Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, s := connect("ann"); s == nil {
		t.Error("none came in place of what waits")
	}
	if _, err := servers[4].Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the one without a request: %v, want it closed", err)
	}
	if _, err := servers[2].Read(make([]byte, 1)); err != nil {
		t.Errorf("the one with a request on its way: %v", err)
	}
	_ = servers[0].Close()
	_ = servers[0].Close()
	if g.open != 7 {
		t.Errorf("%d are open, want 7", g.open)
	}
	if _, s := connect("eve"); s == nil {
		t.Error("none came in place of what was closed")
	}
}

// Ensure that an address has 32 connections over the network, that one machine with a network of IPv6 counts once, and
// that the shares of the limit of open files leave some for jobs.
func TestAddresses(t *testing.T) {
	for _, c := range []struct{ at, want string }{{"127.0.0.1:5", "127.0.0.1"}, {"[::ffff:10.0.0.1]:5", "10.0.0.1"},
		{"[2001:db8::1]:5", "2001:db8::/64"}, {"[2001:db8::ffff:1]:7", "2001:db8::/64"}} {
		a, err := net.ResolveTCPAddr("tcp", c.at)
		if err != nil {
			t.Fatal(err)
		}
		if got := addressOf(addressed{at: a}); got != c.want {
			t.Errorf("%s: %s, want %s", c.at, got, c.want)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := newGate(l, 100, EachAddress, addressOf)
	server := &http.Server{Handler: http.NotFoundHandler(), ConnState: noteState, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(g) }()
	t.Cleanup(func() { _ = server.Close() })
	for range 2 * EachAddress {
		c, refused := net.Dial("tcp", l.Addr().String())
		if refused != nil {
			t.Fatal(refused)
		}
		t.Cleanup(func() { _ = c.Close() })
	}
	resp, err := http.Get("http://" + l.Addr().String()) //nolint:noctx // it is short
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open > EachAddress {
		t.Errorf("%d connections of one address", g.open)
	}
	for _, files := range []int{64, 256, 1024, 1 << 20} {
		r := roomOf(files)
		sum := r.Socket + r.Network + r.Streams + r.Streams/4
		if r.Network < 1 || r.Streams < 2 || files >= 256 && sum > files-leastFiles || sum > mostFiles {
			t.Errorf("%d files: %+v", files, r)
		}
	}
	if r := roomOf(256); r.Streams-r.Streams/4 < 40 {
		t.Errorf("256 files: %+v", r)
	}
}

// addressed is a connection from somewhere.
type addressed struct {
	net.Conn
	at net.Addr
}

func (a addressed) RemoteAddr() net.Addr { return a.at }
