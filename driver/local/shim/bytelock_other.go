//go:build !linux

package shim

import (
	"errors"
	"os"
)

// lockByte fails: no job runs here.
func lockByte(*os.File, int16, int64) error { return errors.ErrUnsupported }

// lockedFile names no file.
func lockedFile(string) string { return "" }
