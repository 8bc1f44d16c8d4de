//go:build !linux

package access

import "errors"

// peerUID fails: no manager serves here.
func peerUID(int) (uint32, error) { return 0, errors.ErrUnsupported }
