// Package shareddata finds the folder of public traces and profiles that tests and benchmarks read. Nothing of it is
// part of this module: where it is missing, those tests skip and say so.
package shareddata

import (
	"os"
	"path/filepath"
	"testing"
)

// The environment variables that DataDir reads.
const (
	FolderVar  = "TRAINYARD_DATA"         // the folder
	RequireVar = "TRAINYARD_REQUIRE_DATA" // set: a missing folder is a failure, not a skip
)

// DataDir returns the data folder: the value of TRAINYARD_DATA, else the first folder shared/data found next to the
// working directory or any folder above it. If there is none it skips t, or fails it when TRAINYARD_REQUIRE_DATA is
// set.
func DataDir(t testing.TB) string {
	t.Helper()
	if dir := os.Getenv(FolderVar); dir != "" {
		if isDir(dir) {
			return dir
		}
		missing(t, FolderVar+" is "+dir+", want a folder")
	}
	if dir := above(); dir != "" {
		return dir
	}
	missing(t, "no folder shared/data above the working directory, and "+FolderVar+" is not set")
	return ""
}

// above walks up from the working directory to a folder that has shared/data in it.
func above() string {
	at, err := os.Getwd()
	for err == nil {
		if dir := filepath.Join(at, "shared", "data"); isDir(dir) {
			return dir
		}
		up := filepath.Dir(at)
		if up == at {
			break
		}
		at = up
	}
	return ""
}

func missing(t testing.TB, why string) {
	t.Helper()
	if os.Getenv(RequireVar) != "" {
		t.Fatalf("shared data needed: %s", why)
	}
	t.Skipf("shared data not found: %s", why)
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
