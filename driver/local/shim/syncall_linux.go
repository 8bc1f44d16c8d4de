package shim

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// syncAll makes all of the disk that a folder is on durable: of many files that is quicker than one by one.
func syncAll(folder string) error {
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(f.Fd())), f.Close())
}
