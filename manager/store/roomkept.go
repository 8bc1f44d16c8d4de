package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// The disk of a folder may fill up while jobs run. Two files keep room on it:
//
//	reserve  ReserveSize bytes, or empty once they were given up, until they are there again
//	spare    what the next manager needs to start on the full disk; there only once the reserve was given up
//
// Most of a reserve that was given up goes to the write-ahead log, past its end, where no one else can take it.
const (
	reserveName = "reserve"
	spareName   = "spare"

	// ReserveSize is how many bytes the reserve keeps.
	ReserveSize = 32 << 20
	// Margin is how many bytes must be free next to the reserve for it to be made.
	Margin = 16 << 20

	logRoom   = 24 << 20 // of the reserve for the write-ahead log
	spareRoom = 4 << 20  // of the reserve for the spare
	leftRoom  = 1 << 20  // that the spare leaves to others
	page      = 4 << 10
)

// ErrNoRoom says that a disk is too full.
var ErrNoRoom = errors.New("no room on the disk")

// NoRoom reports whether a write failed for want of room on the disk of a folder.
func NoRoom(dir string, err error) bool {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return true
	}
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_FULL:
		return true
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN: // also of the files that SQLite keeps next to the database
		free, bad := Free(dir)
		return bad == nil && free < 1<<20
	}
	return false
}

// Free returns how many bytes of the disk of a folder may be written.
func Free(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, fmt.Errorf("store: %s: %w", dir, err)
	}
	return int64(min(s.Bavail, 1<<40)) * int64(s.Bsize), nil //nolint:unconvert // narrower elsewhere
}

// Reserved reports whether the reserve of a folder is there, whole.
func Reserved(dir string) bool {
	info, err := os.Lstat(filepath.Join(dir, reserveName))
	return err == nil && info.Mode().IsRegular() && info.Size() == ReserveSize
}

// Reserve makes the reserve of a folder, unless it is there. ErrNoRoom: it cannot be made now; the file is there all
// the same, and empty.
func Reserve(dir string) error {
	if Reserved(dir) {
		return nil
	}
	f, err := openRoom(dir, reserveName)
	if err != nil {
		return err
	}
	free, err := Free(dir)
	switch {
	case err != nil:
	case free < ReserveSize+Margin:
		err = ErrNoRoom
	default:
		err = allocate(f, ReserveSize)
	}
	if err != nil { // also what is there in part
		return errors.Join(fmt.Errorf("store: reserve: %w", err), f.Truncate(0), f.Close())
	}
	return errors.Join(f.Sync(), f.Close(), remove(filepath.Join(dir, spareName)))
}

// openRoom opens a file that keeps room; it follows no link.
func openRoom(dir, name string) (*os.File, error) {
	return os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
}

// allocate gives an empty file blocks for so many bytes.
func allocate(f *os.File, size int64) error {
	err := preallocate(f, 0, size, true)
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return fmt.Errorf("%w: %w", ErrNoRoom, err)
	}
	if err == nil || !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.ENOSYS) {
		return err
	}
	zeros := make([]byte, 1<<20) // not every file system can: then they are written
	for at := int64(0); at < size; at += int64(len(zeros)) {
		if _, err := f.WriteAt(zeros[:min(int64(len(zeros)), size-at)], at); err != nil {
			return err
		}
	}
	return nil
}

// GiveUp gives the reserve up: to the log, to the next manager, and what is left to whoever comes first. false: there
// was nothing to be given up.
func (s *Store) GiveUp() bool {
	if !Reserved(s.dir) {
		return false
	}
	f, err := openRoom(s.dir, reserveName)
	if err != nil {
		return false
	}
	err = f.Truncate(0)
	_ = f.Close()
	keepPast(filepath.Join(s.dir, FileName+"-wal"), logRoom)
	Spare(s.dir)
	return err == nil
}

// keepPast keeps room for so many bytes past the end of a file, or for as many as there is room for.
func keepPast(path string, size int64) {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW, 0)
	if err != nil {
		return // then the log is made again, like any other file
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return
	}
	for ; size >= page; size /= 2 {
		if preallocate(f, info.Size(), size, false) == nil {
			return
		}
	}
}

// Spare makes the spare of a folder whose reserve was given up as large as there is room for. What is there stays.
func Spare(dir string) {
	f, err := openRoom(dir, spareName)
	if err != nil {
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return
	}
	for size := int64(spareRoom); size > max(info.Size(), page); size /= 2 {
		if free, bad := Free(dir); bad == nil && free-leftRoom >= size-info.Size() && allocate(f, size) == nil {
			return
		}
	}
}

// useSpare lets go of the spare of a folder whose reserve was given up: a manager starts on the full disk.
func useSpare(dir string) error {
	if Reserved(dir) {
		return nil
	}
	return remove(filepath.Join(dir, spareName))
}
