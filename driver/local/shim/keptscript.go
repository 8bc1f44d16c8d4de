package shim

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/driver/local/beneath"
)

// snapshots is where the scripts are that jobs run as they were when they were submitted: each in a folder by its
// digest, under its own name.
const snapshots = "snapshots"

// Folders that are being written, or removed: their names are no digests, so that no job uses one that is not whole.
const (
	unfinished = ".new-"
	removed    = ".old-"
)

// ErrScriptLost says that the script of a job is not there any more, or is not what was kept.
var ErrScriptLost = errors.New("the script that it was submitted with is lost")

// KeepScript keeps the text of a script for jobs that run it, and returns its digest: alike ones are kept once. It is
// durable, and whole, when KeepScript returns.
func (s State) KeepScript(name string, text []byte) (digest string, err error) {
	digest = scriptDigest(name, text)
	folder := filepath.Join(string(s), snapshots)
	err = os.MkdirAll(folder, 0o700)
	if err != nil {
		return "", err
	}
	switch _, err = s.KeptScript(digest, name); {
	case err == nil:
		return digest, errors.Join(syncDir(folder), syncDir(string(s)))
	case !errors.Is(err, ErrScriptLost):
		return "", err
	}
	fresh, err := os.MkdirTemp(folder, unfinished)
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(fresh) }() // it is elsewhere by then, unless something failed
	f, err := os.OpenFile(filepath.Join(fresh, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Sync(), f.Close(), syncDir(fresh))
	if err != nil {
		return "", err
	}
	if _, err = s.DropSnapshot(digest); err != nil && !errors.Is(err, os.ErrNotExist) { // not what was kept
		return "", err
	}
	err = os.Rename(fresh, filepath.Join(folder, digest))
	return digest, errors.Join(err, syncDir(folder), syncDir(string(s)))
}

// KeepScriptText keeps what ScriptText returned, by the digest that it had, see KeepScript; ErrOther if it is something
// else.
func (s State) KeepScriptText(digest, name string, text []byte) error {
	if scriptDigest(name, text) != digest {
		return ErrOther
	}
	_, err := s.KeepScript(name, text)
	return err
}

func scriptDigest(name string, text []byte) string {
	sum := sha256.Sum256(bytes.Join([][]byte{[]byte(name), text}, []byte{0}))
	return hex.EncodeToString(sum[:])
}

// KeptScript returns the path of a script that is kept; ErrScriptLost, with the file, if it cannot be had.
func (s State) KeptScript(digest, name string) (path string, err error) {
	path, _, err = s.ScriptText(digest, name)
	return path, err
}

// ScriptText returns the text of a script as well, see KeptScript.
func (s State) ScriptText(digest, name string) (path string, text []byte, err error) {
	path = filepath.Join(snapshots, digest, name)
	text, err = beneath.Read(string(s), path, task.MaxScript)
	if err == nil && scriptDigest(name, text) != digest {
		err = errors.New("it was changed")
	}
	path = filepath.Join(string(s), path)
	switch {
	case mayPass(err):
		return "", nil, fmt.Errorf("script %s: %w", path, err)
	case err != nil:
		return "", nil, fmt.Errorf("%w: %s: %w", ErrScriptLost, path, err)
	}
	return path, text, nil
}

// Snapshots returns the digests of what is kept, and what was left where something was killed as it wrote or removed.
func (s State) Snapshots() (digests, left []string, err error) {
	entries, err := os.ReadDir(filepath.Join(string(s), snapshots))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil, nil
	}
	for _, e := range entries {
		switch name := e.Name(); {
		case len(name) == 2*sha256.Size:
			digests = append(digests, name)
		case strings.HasPrefix(name, unfinished), strings.HasPrefix(name, removed):
			left = append(left, name)
		}
	}
	return digests, left, err
}

// DropSnapshot removes what is kept by a digest, or was left, and returns its size in bytes. At a kill what is left of
// it has another name.
func (s State) DropSnapshot(name string) (size int64, err error) {
	folder := filepath.Join(string(s), snapshots)
	old := filepath.Join(folder, removed+strings.TrimPrefix(strings.TrimPrefix(name, unfinished), removed))
	if name != filepath.Base(old) {
		_ = os.RemoveAll(old)
		if err := os.Rename(filepath.Join(folder, name), old); err != nil {
			return 0, err
		}
	}
	return s.SnapshotSize(filepath.Base(old)), os.RemoveAll(old)
}

// SnapshotSize returns the bytes that a snapshot has.
func (s State) SnapshotSize(name string) (size int64) {
	_ = filepath.WalkDir(filepath.Join(string(s), snapshots, name), func(_ string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil // the size of what can be seen
		}
		if info, bad := e.Info(); bad == nil {
			size += info.Size()
		}
		return nil
	})
	return size
}

// SnapshotName is what a snapshot is called for people: its script and the start of its digest.
func (s State) SnapshotName(digest string) string {
	entries, _ := os.ReadDir(filepath.Join(string(s), snapshots, digest))
	if len(entries) != 1 || len(digest) != 2*sha256.Size {
		return digest // left by a kill
	}
	return fmt.Sprintf("%s (%.12s)", entries[0].Name(), digest)
}

// findModules has Python find modules where the script of an order was, whose copy is run.
func (o *Order) findModules() {
	if o.Modules == "" {
		return
	}
	const name = "PYTHONPATH="
	path := o.Modules
	for _, kv := range slices.Backward(o.Env) {
		if more, is := strings.CutPrefix(kv, name); is && more != "" {
			path += string(os.PathListSeparator) + more
		}
		if strings.HasPrefix(kv, name) {
			break
		}
	}
	o.Env = append(slices.Clip(o.Env), name+path)
}
