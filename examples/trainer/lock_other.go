//go:build !linux

package main

import (
	"errors"
	"os"
)

// lock is for Linux only, as is the rest of the ledger.
func lock(string) (*os.File, error) { return nil, errors.ErrUnsupported }
