//go:build !linux

package access

import (
	"errors"
	"net"
)

// peerUID fails: no manager serves here.
func peerUID(int) (uint32, error) { return 0, errors.ErrUnsupported }

// fileLimit is that of no manager.
func fileLimit() int { return 0 }

// pending reports nothing: no manager serves here.
func pending(net.Conn) bool { return false }
