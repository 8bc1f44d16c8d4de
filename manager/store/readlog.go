package store

import (
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Read returns the log of a folder as Store.Lines does, for one who does not manage it: the log is left as it is, no
// lock is taken. It is to be closed. SQLite keeps two files of its own next to the log while it is read, and leaves
// them there, so the folder must allow that. A folder without a log is an error that wraps fs.ErrNotExist, and stays as
// it is.
func Read(dir string) (io.ReadCloser, error) {
	path := filepath.Join(dir, FileName)
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	db, err := sql.Open("sqlite", "file:"+uri(path)+"?mode=ro&_pragma=query_only(true)&_pragma=busy_timeout(5000)")
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	db.SetMaxOpenConns(1)
	have := 0
	if bad := db.QueryRow("pragma user_version").Scan(&have); bad != nil {
		return nil, errors.Join(fmt.Errorf("store: %s: %w", path, bad), db.Close())
	}
	if have > version {
		return nil, errors.Join(fmt.Errorf("store: %w", newer(path, have)), db.Close())
	}
	if have != version {
		return nil, errors.Join(fmt.Errorf("store: %s is of version %d, this Trainyard reads %d: %w", path, have,
			version, ErrOlder), db.Close())
	}
	s := &Store{db: db}
	if s.unsummed, _, err = unsummed(db); err != nil {
		return nil, errors.Join(unread("meta", err), db.Close())
	}
	lines, err := s.Lines()
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return both{lines, db}, nil
}

// both closes the database behind its lines.
type both struct {
	io.ReadCloser
	db *sql.DB
}

// Close closes both.
func (b both) Close() error { return errors.Join(b.ReadCloser.Close(), b.db.Close()) }
