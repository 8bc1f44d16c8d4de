package shim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// record is the run directory in the hands of its shim. It is held open: what the shim writes is found wherever the
// folder was moved. The file that is to be over.json is there before the job runs, with room on disk, so that a full
// disk does not cost the end of an attempt.
type record struct {
	dir    RunDir
	folder *os.File
	over   *os.File
}

const (
	reserved     = ".over.json"
	reservedRoom = 8 << 10
)

func openRecord(dir RunDir) (*record, error) {
	folder, err := os.Open(string(dir))
	if err != nil {
		return nil, err
	}
	r := &record{dir: dir, folder: folder}
	_ = os.Remove(r.file(reserved)) // of whoever put it there: the job before can have
	if r.over, err = os.OpenFile(r.file(reserved), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err != nil {
		return nil, err
	}
	return r, reserve(r.over, reservedRoom)
}

// file names a file of the folder by what holds it open.
func (r *record) file(name string) string {
	return fmt.Sprintf("/proc/self/fd/%d/%s", r.folder.Fd(), name)
}

// write writes a file of the folder, which is made again if the job removed it.
func (r *record) write(name string, x any) error {
	err := writeJSON(r.file(name), x)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err = os.Mkdir(string(r.dir), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return errors.Join(writeJSON(r.dir.file(name), x), syncDir(filepath.Dir(string(r.dir))))
}

// end writes over.json, however long that takes: an end that is not written is one that did not happen, and the job
// would run once more.
func (r *record) end(over *Over) error {
	if err := r.useReserved(over); err == nil {
		return nil
	}
	_ = os.Remove(r.file(reserved)) // its room may be what is missing
	return persist(func() error { return r.write("over.json", over) })
}

// useReserved is the way that needs no more room.
func (r *record) useReserved(over *Over) error {
	b, err := json.Marshal(over)
	if err != nil {
		return err
	}
	_, err = r.over.Write(append(b, '\n'))
	err = errors.Join(err, r.over.Sync())
	if err == nil {
		err = os.Rename(r.file(reserved), r.file("over.json"))
	}
	if err != nil {
		return err
	}
	return r.folder.Sync()
}

// passing are the errors of a disk that may be none a moment later.
var passing = []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EROFS, syscall.ENOMEM, syscall.EMFILE,
	syscall.ENFILE}

func mayPass(err error) bool {
	return slices.ContainsFunc(passing, func(e error) bool { return errors.Is(err, e) })
}

// persist tries a write until it is done or hopeless.
func persist(write func() error) error {
	for rest := firstRest; ; rest = min(2*rest, lastRest) {
		err := write()
		if err == nil || !mayPass(err) {
			return err
		}
		if rest < lastRest { // not for ever: it may be the same disk
			slog.Error("the end cannot be written yet", "error", err)
		}
		time.Sleep(rest)
	}
}
