package shim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Tree is the name of a working tree in the folder of its digest, see snapshots.
const Tree = "tree"

// NewTree writes a working tree: write makes it in a folder that is not there yet, with another for what it needs
// meanwhile, and returns the digest to keep it under. Alike ones are kept once. It is durable and whole when NewTree
// returns, but in its place only after put. drop, which comes last in any case, removes what put has not moved.
func (s State) NewTree(write func(folder, scratch string) (digest string, err error)) (put func() error, drop func(),
	err error) {
	folder := filepath.Join(string(s), snapshots)
	err = os.MkdirAll(folder, 0o700)
	if err != nil {
		return nil, nil, err
	}
	scratch, err := os.MkdirTemp(folder, unfinished)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	fresh, err := os.MkdirTemp(folder, unfinished)
	if err != nil {
		return nil, nil, err
	}
	drop = func() { _ = os.RemoveAll(fresh) }
	digest, err := write(filepath.Join(fresh, Tree), scratch)
	if err == nil {
		err = syncAll(fresh)
	}
	if err != nil {
		drop()
		return nil, nil, err
	}
	put = func() error {
		if _, kept := s.KeptTree(digest); kept == nil {
			return syncDir(folder)
		}
		return errors.Join(os.Rename(fresh, filepath.Join(folder, digest)), syncDir(folder), syncDir(string(s)))
	}
	return put, drop, nil
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
