//go:build !failpoints

package failpoint

// Here does nothing in this build.
func Here(string) {}
