// Package bound checks numbers against limits. It words no errors: the limits of a field belong into its own message.
package bound

import "cmp"

// Within reports whether x is at least low and at most high; NaN is not.
func Within[T cmp.Ordered](x, low, high T) bool { return low <= x && x <= high }
