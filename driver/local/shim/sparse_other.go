//go:build !linux

package shim

import (
	"errors"
	"math"
	"os"
)

// Data takes all of a file for data.
func Data(_ *os.File, at int64) (from, to int64, err error) { return at, math.MaxInt64, nil }

func punch(*os.File, int64, int64) error { return errors.ErrUnsupported }

func takes(*os.File) (size, taken, free int64, err error) { return 0, 0, 0, errors.ErrUnsupported }
