package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/trainyard/trainyard/internal/failpoint"
)

// FileName is the database in the folder of a manager.
const FileName = "trainyard.db"

// newName is what it is called until it is whole.
const newName = "new.db"

// schema makes an empty database of the present version.
const schema = `
begin immediate;
create table meta (name text primary key, value text not null) without rowid;
create table log (seq integer primary key, batch integer not null, line blob not null, sum integer);
create table aside (seq integer not null, batch integer not null, line blob not null, sum integer, why text not null);
insert into meta values ('epoch', '0');
insert into meta values ('unsummed', '0');
pragma user_version = %d;
commit;
`

// upgrade brings version 1, whose lines have no checksum, to the present one.
const upgrade = `
begin immediate;
alter table log add column sum integer;
delete from meta where name = 'unsummed';
create table aside (seq integer not null, batch integer not null, line blob not null, sum integer, why text not null);
pragma user_version = %d;
commit;
`

// create makes the database of an empty folder. It has its name once it is whole: what a crash leaves of it is started
// again, and a database under that name which is not whole was damaged.
func create(dir string) error {
	if err := empty(dir); err != nil {
		return err
	}
	temp := filepath.Join(dir, newName)
	if err := dropNew(dir); err != nil {
		return err
	}
	// commands and their environment are no one else's business
	f, err := os.OpenFile(temp, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Close(), fill(temp)); err != nil {
		return err
	}
	failpoint.Here("store.made")
	if err := os.Rename(temp, filepath.Join(dir, FileName)); err != nil {
		return err
	}
	failpoint.Here("store.named")
	return errors.Join(syncFolder(dir), syncNames(dir))
}

// syncNames makes the name of a folder durable, and those of the folders above it. It ends at one that we may not read,
// or that cannot be synced: those were there before.
func syncNames(dir string) error {
	for up := filepath.Dir(dir); ; dir, up = up, filepath.Dir(up) {
		if up == dir {
			return nil
		}
		switch err := syncFolder(up); {
		case errors.Is(err, os.ErrPermission), errors.Is(err, syscall.EINVAL):
			return nil
		case err != nil:
			return err
		}
	}
}

// fill makes the database of an empty log at path.
func fill(path string) error {
	db, err := connect(path, "_pragma=journal_mode(delete)")
	if err != nil {
		return err
	}
	_, err = db.Exec(fmt.Sprintf(schema, version))
	return errors.Join(err, db.Close())
}

// remove removes a file if it is there.
func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// syncFolder makes the names in a folder durable.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// foreign returns ErrForeign if the folder has no log, but other things.
func foreign(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, FileName)); err == nil {
		return nil
	}
	return empty(dir)
}

// empty returns ErrForeign if the folder holds anything that a manager makes only once it has a log, or that is not
// ours.
func empty(dir string) error {
	_, err := os.Stat(filepath.Join(dir, FileName))
	isNew := errors.Is(err, os.ErrNotExist)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		// who may ask can be said before there is anything to ask
		ours := e.Name() == "lock" || e.Name() == "tokens.json" ||
			strings.HasPrefix(e.Name(), newName) || !isNew && strings.HasPrefix(e.Name(), FileName)
		if !ours {
			return fmt.Errorf("%w (there is %s): put the log back, or start in an empty folder", ErrForeign, e.Name())
		}
	}
	return nil
}
