package server

import (
	"context"
	"net"
	"os/user"
	"strconv"

	"golang.org/x/sys/unix"
)

// peerKey is under which a connection's peer stands in the context of its requests.
type peerKey struct{}

// peer is who is at the other end of a unix socket, as the kernel tells.
type peer struct {
	uid uint32
	err error
}

// withPeer notes the peer of a connection over a unix socket.
func withPeer(ctx context.Context, c net.Conn) context.Context {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return ctx
	}
	var p peer
	raw, err := u.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			var cred *unix.Ucred
			if cred, p.err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); p.err == nil {
				p.uid = cred.Uid
			}
		})
	}
	if err != nil {
		p.err = err
	}
	return context.WithValue(ctx, peerKey{}, p)
}

// peerOf returns the peer of a request that came over a unix socket.
func peerOf(ctx context.Context) (p peer, local bool) {
	p, local = ctx.Value(peerKey{}).(peer)
	return p, local
}

// userName names a user of this machine. One without a name gets one that nobody else can have: names have no colon.
func userName(uid uint32) string {
	id := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return "uid:" + id
}
