//go:build !linux

package store

import (
	"os"

	"golang.org/x/sys/unix"
)

func preallocate(*os.File, int64, int64, bool) error { return unix.EOPNOTSUPP }
