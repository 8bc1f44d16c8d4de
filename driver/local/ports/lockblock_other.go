//go:build !linux

package ports

import (
	"errors"
	"os"
)

// lockBlock takes the lock of the block whose first port is given.
func lockBlock(int) (*os.File, error) { return nil, errors.ErrUnsupported }
