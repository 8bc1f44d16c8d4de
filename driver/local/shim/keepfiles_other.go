//go:build !linux

package shim

// KeepFiles does nothing: no job runs here.
func KeepFiles() {}
