package access

import (
	"context"
	"errors"
	"net"
	"os/user"
	"strconv"
)

// peerKey is under which a connection's peer stands in the context of its requests.
type peerKey struct{}

// Peer is who is at the other end of a unix socket, as the kernel says.
type Peer struct {
	UID uint32
	Err error
}

// WithPeer notes the peer of a connection over a unix socket.
func WithPeer(ctx context.Context, c net.Conn) context.Context {
	if h, ok := c.(*held); ok {
		c = h.Conn
	}
	if _, ok := c.(*net.UnixConn); !ok {
		return ctx
	}
	return context.WithValue(ctx, peerKey{}, peerAt(c))
}

// peerAt returns the peer of a connection over a unix socket.
func peerAt(c net.Conn) (p Peer) {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return Peer{Err: errors.ErrUnsupported}
	}
	raw, err := u.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			p.UID, p.Err = peerUID(int(fd))
		})
	}
	if err != nil {
		p.Err = err
	}
	return p
}

// PeerOf returns the peer of a request that came over a unix socket.
func PeerOf(ctx context.Context) (p Peer, local bool) {
	p, local = ctx.Value(peerKey{}).(Peer)
	return p, local
}

// UserName names a user of this machine. One without a name gets one that no one else can have: names have no colon.
func UserName(uid uint32) string {
	id := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return "uid:" + id
}
