package store

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
	_ "modernc.org/sqlite" // the driver named sqlite

	"github.com/trainyard/trainyard/eventlog"
)

// version is the schema of the database. A newer one is refused.
const version = 2

// Errors that callers act on.
var (
	// ErrBusy says that another manager has the folder.
	ErrBusy = errors.New("in use by another trainyard")
	// ErrFenced says that a later manager has the folder, although we never let go of it.
	ErrFenced = errors.New("a later trainyard has the folder")
	// ErrOlder is what to do about a database of a version that this program brings to its own, but does not read.
	ErrOlder = errors.New("start `trainyard serve` on it")
	// ErrDamaged says that an event in the log is not what was written.
	ErrDamaged = errors.New("damaged")
	// ErrUnreadable says that an event is not written, because it could not be read back.
	ErrUnreadable = errors.New("would not be read back")
	// ErrUnread says that the log cannot be read at the moment, which says nothing about what is in it.
	ErrUnread = errors.New("cannot be read now")
	// ErrForeign says that the folder holds something, but no log.
	ErrForeign = errors.New("not empty, but without the log of a trainyard")
)

// Store is the log of one manager. It belongs to one goroutine, but for Lines and Page.
type Store struct {
	dir   string
	lock  *os.File
	db    *sql.DB
	epoch int64 // ours; 0 = we have none, and write as long as no one has

	unsummed uint64             // the last event that may have no checksum
	supposed map[uint64]StandIn // see Suppose
}

// Open takes the folder, which it makes if it is not there, for this process. ErrBusy: another has it. ErrForeign: the
// folder is not that of a manager. Nothing that is missing or cannot be read is taken for new: only an empty folder is.
func Open(dir string) (*Store, error) {
	s, err := OpenDamaged(dir)
	if err != nil {
		return nil, err
	}
	if err := s.quarantineDamaged(); err != nil {
		return nil, errors.Join(fmt.Errorf("store: %s: %w", dir, advised(err)), s.Close())
	}
	return s, nil
}

// OpenDamaged is Open for one who is to repair what is damaged: nothing is quarantined, nor refused for it.
func OpenDamaged(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	if err := foreign(dir); err != nil { // before anything is left in it
		return nil, fmt.Errorf("store: %s: %w", dir, err)
	}
	lock, err := take(dir)
	if err != nil {
		return nil, fmt.Errorf("store: %s: %w", dir, err)
	}
	s := &Store{dir: dir, lock: lock}
	if err := errors.Join(useSpare(dir), s.open()); err != nil {
		return nil, errors.Join(fmt.Errorf("store: %s: %w", dir, advised(err)), s.Close())
	}
	return s, nil
}

// take locks the folder and leaves the number of this process in the lock.
func take(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = lock(f)
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// orphaned is how long a lock may be held by no one that can be named. A manager that is killed, or closed, while this
// process starts another leaves its lock to the new process, until that runs a program of its own.
const orphaned = 2 * time.Second

// lock takes the lock of a folder. ErrBusy: the process that it names has it.
func lock(f *os.File) error {
	for end := time.Now().Add(orphaned); ; time.Sleep(time.Millisecond) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return err
		}
		var b [20]byte
		n, _ := f.ReadAt(b[:], 0)
		pid, err := strconv.Atoi(string(b[:n]))
		gone := err != nil || pid == os.Getpid() || errors.Is(unix.Kill(pid, 0), unix.ESRCH)
		if !gone || time.Now().After(end) {
			return fmt.Errorf("%w (process %s)", ErrBusy, b[:n])
		}
	}
}

func (s *Store) open() error {
	path := filepath.Join(s.dir, FileName)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = create(s.dir)
	}
	switch {
	case err != nil:
		return err
	case info != nil && info.Size() == 0:
		return fmt.Errorf("%s is empty: put the one that belongs here back, or start in an empty folder", FileName)
	}
	for _, name := range []string{newKept, newTokens} {
		if _, missing := os.Lstat(filepath.Join(s.dir, name)); missing == nil { // a Restore was stopped at its end
			if failed := finish(s.dir); failed != nil {
				return failed
			}
		}
	}
	if s.db, err = connect(path, "_pragma=journal_mode(wal)"); err != nil {
		return err
	}
	return s.check()
}

// connect opens the database at path, which is made if it is not there.
func connect(path, pragma string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+uri(path)+"?"+pragma+
		"&_pragma=synchronous(full)&_pragma=busy_timeout(5000)&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

// uri escapes what means something in the address of a database.
func uri(path string) string {
	var b []byte
	for i := range len(path) {
		if c := path[i]; c == '?' || c == '#' || c == '%' {
			b = fmt.Appendf(b, "%%%02x", c)
		} else {
			b = append(b, c)
		}
	}
	return string(b)
}

// newer is the error of a database of a version that this program does not know.
func newer(path string, have int) error {
	return fmt.Errorf("%s %w (version %d, this one knows %d)", path, eventlog.ErrNewer, have, version)
}

// check refuses a database that is not ours or newer, and brings an older one to the present version.
func (s *Store) check() error {
	have := 0
	if err := s.db.QueryRow("pragma user_version").Scan(&have); err != nil {
		return fmt.Errorf("%s: %w", FileName, err)
	}
	switch {
	case have > version:
		return newer(FileName, have)
	case have < 1:
		return fmt.Errorf("%s is no log of a Trainyard", FileName)
	case have < version:
		if _, err := s.db.Exec(fmt.Sprintf(upgrade, version)); err != nil {
			return fmt.Errorf("%s: version %d cannot be brought to %d: %w", FileName, have, version, err)
		}
	}
	last, noted, err := unsummed(s.db)
	if err == nil && !noted {
		_, err = s.db.Exec("insert into meta values ('unsummed', ?)", int64(last))
	}
	if s.unsummed = last; err != nil {
		return fmt.Errorf("%s: %w", FileName, err)
	}
	return nil
}

// Close gives the folder back.
func (s *Store) Close() error {
	var err error
	if s.db != nil {
		err = s.db.Close()
	}
	if s.lock == nil { // see OpenCopy
		return err
	}
	return errors.Join(err, s.lock.Close())
}

// NextEpoch numbers the manager that has the folder now: higher than all before it and than above, durably. The
// database may be a copy from before, and know fewer.
func (s *Store) NextEpoch(above int64) (epoch int64, err error) {
	err = s.db.QueryRow("update meta set value = max(cast(value as integer), ?) + 1 where name = 'epoch' returning "+
		"cast(value as integer)", above).Scan(&epoch)
	if err != nil {
		return 0, fmt.Errorf("store: epoch: %w", err)
	}
	s.epoch = epoch
	if !Reserved(s.dir) { // what a manager that was stopped had of it is gone
		keepPast(filepath.Join(s.dir, FileName+"-wal"), spareRoom/2)
	}
	return epoch, nil
}

// Begun reports whether the log has a header.
func (s *Store) Begun() (bool, error) {
	n := 0
	err := s.db.QueryRow("select count(*) from meta where name = 'header'").Scan(&n)
	if err != nil {
		return false, fmt.Errorf("store: %w", err)
	}
	return n > 0, nil
}

// Change writes another header of a log that is started: from the next batch on another system decides.
func (s *Store) Change(h eventlog.Header) error {
	if _, err := s.db.Exec("update meta set value = ? where name = 'header'",
		string(eventlog.AppendHeader(nil, h))); err != nil {
		return fmt.Errorf("store: header: %w", err)
	}
	return nil
}

// Begin writes the header of a new log. ErrForeign: the folder is in use already, so it has lost its log.
func (s *Store) Begin(h eventlog.Header) error {
	if err := empty(s.dir); err != nil {
		return fmt.Errorf("store: %s: %w", s.dir, err)
	}
	if _, err := s.db.Exec("insert into meta values ('header', ?)", string(eventlog.AppendHeader(nil, h))); err != nil {
		return fmt.Errorf("store: header: %w", err)
	}
	return nil
}
