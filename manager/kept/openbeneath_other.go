//go:build !linux

package kept

import "errors"

// openBeneath fails: no manager serves here.
func openBeneath(int, string) (int, error) { return -1, errors.ErrUnsupported }
