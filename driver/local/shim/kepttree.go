package shim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Tree is the name of a working tree in the folder of its digest, see snapshots.
const Tree = "tree"

// KeepTree keeps a working tree, which write makes in a folder that is not there yet, under the digest that write
// returns. Alike ones are kept once. It is durable, and whole, when KeepTree returns.
func (s State) KeepTree(write func(folder, scratch string) (digest string, err error)) (err error) {
	folder := filepath.Join(string(s), snapshots)
	if err = os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	fresh, err := os.MkdirTemp(folder, unfinished)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(fresh) }() // it is elsewhere by then, unless something failed
	scratch, err := os.MkdirTemp(folder, unfinished)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	digest, err := write(filepath.Join(fresh, Tree), scratch)
	if err != nil {
		return err
	}
	if _, err = s.KeptTree(digest); err == nil {
		return syncDir(folder)
	}
	if err = syncAll(fresh); err != nil {
		return err
	}
	return errors.Join(os.Rename(fresh, filepath.Join(folder, digest)), syncDir(folder), syncDir(string(s)))
}

// syncAll makes all of the disk that a folder is on durable: of many files that is quicker than one by one.
func syncAll(folder string) error {
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(f.Fd())), f.Close())
}

// KeptTree returns the folder of a working tree that is kept; ErrScriptLost if there is none.
func (s State) KeptTree(digest string) (string, error) {
	path := filepath.Join(string(s), snapshots, digest, Tree)
	info, err := os.Lstat(path)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("working tree %s: %w", path, err)
	case err != nil || !info.IsDir():
		return "", fmt.Errorf("%w: %s", ErrScriptLost, path)
	}
	return path, nil
}
