//go:build !linux

package shim

import "errors"

// syncAll makes a folder durable: on Linux alone, where managers run.
func syncAll(string) error { return errors.ErrUnsupported }
