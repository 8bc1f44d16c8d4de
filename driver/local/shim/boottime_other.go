//go:build !linux

package shim

import "time"

// SinceBoot returns 0: the time since the machine was booted is not known here.
func SinceBoot() time.Duration { return 0 }
