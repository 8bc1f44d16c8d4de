//go:build !linux

package beneath

import "errors"

// openBeneath fails: no job runs here.
func openBeneath(string, string, bool) (int, error) { return -1, errors.ErrUnsupported }
