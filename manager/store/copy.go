package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/trainyard/trainyard/internal/failpoint"
)

// CopyTo writes the log of a folder, as it is after some batch, to a file that is there and empty. The folder may be
// served meanwhile; whoever writes there does not wait. A folder without a log is an error that wraps fs.ErrNotExist.
func CopyTo(ctx context.Context, dir, path string) error {
	from := filepath.Join(dir, FileName)
	if _, err := os.Stat(from); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	db, err := sql.Open("sqlite", "file:"+uri(from)+"?mode=ro&_pragma=busy_timeout(5000)")
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	db.SetMaxOpenConns(1)
	_, err = db.ExecContext(ctx, "vacuum into ?", path)
	if err = errors.Join(err, db.Close()); err != nil {
		return fmt.Errorf("store: %s: cannot be copied: %w", from, err)
	}
	return nil
}

// OpenCopy opens a log that CopyTo wrote, or one like it: whoever calls has it alone. One of an earlier version is
// brought to the present one.
func OpenCopy(path string) (*Store, error) {
	db, err := connect(path, "_pragma=journal_mode(delete)")
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	s := &Store{dir: filepath.Dir(path), db: db}
	if err := s.check(); err != nil {
		return nil, errors.Join(fmt.Errorf("store: the log: %w", err), db.Close())
	}
	return s, nil
}

// ErrNotEmpty says that a folder that is to be restored has something in it.
var ErrNotEmpty = errors.New("want an empty folder; without a backup a manager goes on from what is there")

// newTokens is what the tokens of a folder are called until its log is there, see Restoring.
const newTokens = newName + "-tokens"

// newKept is where the folders are that go into a folder once its log is there, see Restoring.
const newKept = newName + "-kept"

// Restoring is an empty folder that gets the log, the tokens and some folders of another. All are there, or none,
// whenever it is stopped: the log gets its name last, and whoever opens a folder with a log gives the others theirs.
type Restoring struct {
	dir    string
	lock   *os.File
	remove []string // unless the log is there: what was made for it
	done   bool
}

// Restore takes an empty folder, which it makes if it is not there. What a Restore left that was stopped does not
// count. ErrNotEmpty: there is something in it. ErrBusy: another manager has it. The result is to be closed.
func Restore(dir string) (*Restoring, error) {
	r := &Restoring{dir: dir}
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		r.remove = []string{dir}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	had, err := unused(dir)
	if err == nil {
		r.lock, err = take(dir)
	}
	if err == nil && !had {
		r.remove = append(r.remove, filepath.Join(dir, "lock"))
	}
	if err == nil {
		_, err = unused(dir) // another may have had it
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("store: %s: %w", dir, err), r.Close())
	}
	return r, nil
}

// unused returns ErrNotEmpty if a folder holds anything but a lock and what a Restore left that was stopped; had: there
// is a lock.
func unused(dir string) (had bool, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		switch {
		case e.Name() == "lock":
			had = true
		case !strings.HasPrefix(e.Name(), newName):
			return had, fmt.Errorf("not empty (there is %s): %w", e.Name(), ErrNotEmpty)
		}
	}
	return had, err
}

// Write writes the log, and Tokens the tokens, durably but not yet under their names.
func (r *Restoring) Write(from io.Reader) error { return r.write(newName, from) }

// Tokens writes the tokens, see Write.
func (r *Restoring) Tokens(from io.Reader) error { return r.write(newTokens, from) }

// Kept makes a folder for folders that are to be in this one, under the same names. What is in them is to be durable.
func (r *Restoring) Kept() (string, error) {
	path := filepath.Join(r.dir, newKept)
	return path, errors.Join(os.RemoveAll(path), os.Mkdir(path, 0o700))
}

// restoredName is the file that says as of when a folder was restored.
const restoredName = "restored"

// AsOf notes when the backup was made, in the folder that Kept made.
func (r *Restoring) AsOf(made time.Time) error {
	text := strings.NewReader(made.UTC().Format(time.RFC3339Nano) + "\n")
	return errors.Join(r.write(filepath.Join(newKept, restoredName), text), syncFolder(filepath.Join(r.dir, newKept)))
}

// RestoredAsOf returns when the backup was made from which a folder was restored; zero: it was not, as far as is known.
func RestoredAsOf(dir string) time.Time {
	text, _ := os.ReadFile(filepath.Join(dir, restoredName)) // nothing if it is not there
	made, err := time.Parse(time.RFC3339Nano, strings.TrimSpace(string(text)))
	if err != nil {
		return time.Time{}
	}
	return made
}

func (r *Restoring) write(name string, from io.Reader) error {
	path := filepath.Join(r.dir, name)
	if err := remove(path); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	return errors.Join(err, f.Sync(), f.Close())
}

// Open opens the log that was written, to be looked at.
func (r *Restoring) Open() (*Store, error) { return OpenCopy(filepath.Join(r.dir, newName)) }

// Commit makes what was written the folder's own.
func (r *Restoring) Commit() error {
	failpoint.Here("restore.written")
	if err := syncFolder(r.dir); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(r.dir, newName), filepath.Join(r.dir, FileName)); err != nil {
		return err
	}
	r.done = true
	failpoint.Here("restore.named")
	return finish(r.dir)
}

// finish gives the tokens and folders their names in a folder that has its log. It may be stopped, and called again.
func finish(dir string) error {
	kept := filepath.Join(dir, newKept)
	folders, err := os.ReadDir(kept)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, f := range folders {
		if bad := os.Rename(filepath.Join(kept, f.Name()), filepath.Join(dir, f.Name())); bad != nil {
			return bad
		}
	}
	failpoint.Here("restore.kept")
	err = os.Rename(filepath.Join(dir, newTokens), filepath.Join(dir, "tokens.json"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return errors.Join(syncFolder(dir), remove(kept), syncNames(dir))
}

// dropNew removes what was to get its name once the log is there.
func dropNew(dir string) error {
	return errors.Join(remove(filepath.Join(dir, newName)), remove(filepath.Join(dir, newName+"-journal")),
		remove(filepath.Join(dir, newTokens)), os.RemoveAll(filepath.Join(dir, newKept)))
}

// Close gives the folder back, as it was before if nothing was committed.
func (r *Restoring) Close() (err error) {
	if !r.done && r.lock != nil {
		err = dropNew(r.dir)
	}
	for i := len(r.remove) - 1; i >= 0 && !r.done; i-- {
		err = errors.Join(err, remove(r.remove[i]))
	}
	if r.lock != nil {
		err = errors.Join(err, r.lock.Close())
	}
	return err
}
