package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"
)

// HostName is what clients call the manager at the other end of a unix socket.
const HostName = "trainyard"

// strangerError says that another user than the owner of a state folder and root listens on its socket.
type strangerError struct{ uid, owner uint32 }

// Error names both users.
func (e *strangerError) Error() string {
	return fmt.Sprintf("not allowed: user %d listens on its socket, want user %d, whose folder it is, or root", e.uid,
		e.owner)
}

// Unwrap returns ErrForbidden.
func (e *strangerError) Unwrap() error { return ErrForbidden }

// queueFull is how long to wait where so many connect to a socket that no more can wait to be let in.
const queueFull = 5 * time.Millisecond

// DialSocket connects to a control socket, which Socket has named. ErrForbidden: another user than the owner of the
// folder and root listens there.
func DialSocket(ctx context.Context, folder *os.File, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", address)
	for end := time.Now().Add(Patience); errors.Is(err, syscall.EAGAIN) && time.Now().Before(end) && ctx.Err() == nil; {
		pauseFor(ctx, queueFull)
		conn, err = (&net.Dialer{}).DialContext(ctx, "unix", address)
	}
	if err != nil {
		return nil, err
	}
	if err := checkPeer(conn, folder); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}
