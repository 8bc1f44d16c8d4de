package manager

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/manager/access"
	"github.com/trainyard/trainyard/manager/backup"
	"github.com/trainyard/trainyard/manager/store"
	"github.com/trainyard/trainyard/sched"
)

// BackedUp says what a backup has.
type BackedUp struct {
	Made    time.Time // when the log was copied, as the clock was
	Events  uint64    // in the log
	Jobs    int       // that the log knows
	Running int       // of these, that had an attempt
	Tokens  bool      // the folder has tokens
	Bytes   int64     // of the file
	Lost    []Lost    // jobs that lack what they need: it is in no backup
	needs   []need
	// of jobs that are not done and have started, with evidence that they save: where that is. No backup has it
	Checkpoints []CheckpointFolder
}

// CheckpointFolder is where a job saves.
type CheckpointFolder struct {
	Job  sched.JobID
	Name string
	Path string
	Own  bool // in the state folder: its file names no other
}

// Empty reports whether nothing is there: the job starts from zero.
func (c *CheckpointFolder) Empty() bool {
	list, err := os.ReadDir(c.Path)
	return err != nil || len(list) == 0
}

// Backup writes the log of a folder, as it is after some batch, its tokens, and the environments and scripts of jobs
// that are not done to a new file that only its owner can read. The folder may be served meanwhile. A file that is
// there is an error that wraps fs.ErrExist, a folder without a log one that wraps fs.ErrNotExist. A log that no manager
// could start from is an error too. After an error there is no file.
func Backup(ctx context.Context, dir, file, version string) (_ *BackedUp, err error) {
	out, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() {
		if failed := out.Close(); err == nil {
			err = failed
		}
		if err != nil {
			err = errors.Join(err, os.Remove(file))
		}
	}()
	temp, err := os.CreateTemp(filepath.Dir(file), ".trainyard-backup-*")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, temp.Close(), os.Remove(temp.Name())) }()
	// of jobs that ended meanwhile the folder may have removed what they needed: what a second copy lacks too is lost
	for b := new(BackedUp); ; {
		lost, err := b.copy(ctx, dir, temp, out, version)
		if err != nil || slices.Equal(lost, b.Lost) {
			return b, err
		}
		b.Lost = lost
	}
}

// copy writes the backup of a folder to out, by a copy of its log in temp, and returns who lacks something. Both may
// have one before.
func (b *BackedUp) copy(ctx context.Context, dir string, temp, out *os.File, version string) ([]Lost, error) {
	b.Made, b.Tokens = time.Now().UTC(), false
	_, bad := out.Seek(0, io.SeekStart)
	if err := errors.Join(bad, out.Truncate(0), temp.Truncate(0)); err != nil {
		return nil, err
	}
	if err := store.CopyTo(ctx, dir, temp.Name()); err != nil {
		return nil, err
	}
	if err := b.look(temp.Name(), dir); err != nil {
		return nil, fmt.Errorf("manager: %s: the log cannot be used, so it was not backed up: %w; `trainyard doctor "+
			"--repair` makes what can be used of it whole", dir, err)
	}
	return b.write(dir, temp.Name(), out, version)
}

// look finds out what a copy of the log of a folder has, and whether a manager can start from it.
func (b *BackedUp) look(path, dir string) error {
	s, err := store.OpenCopy(path)
	if err != nil {
		return err
	}
	return errors.Join(b.count(s, dir), s.Close())
}

func (b *BackedUp) count(s *store.Store, dir string) error {
	k := &keeper{Store: s, dir: "the log", before: math.MaxInt64}
	state, _, err := k.fold()
	if err != nil {
		return err
	}
	if b.Events, err = s.Last(); err != nil {
		return err
	}
	jobs := state.View().Jobs
	b.Jobs, b.Running, b.Checkpoints, b.needs = len(jobs), 0, nil, nil
	for i := range jobs {
		b.needs = append(b.needs, needsOf(sched.JobID(i), &jobs[i])...)
		if jobs[i].HoldsDevices() {
			b.Running++
		}
		if c, saves := checkpointsOf(&jobs[i], sched.JobID(i), dir); saves {
			b.Checkpoints = append(b.Checkpoints, c)
		}
	}
	return nil
}

// checkpointsOf returns where a job of a state folder saves that is to be started again, and whether it does.
func checkpointsOf(j *sched.Job, id sched.JobID, dir string) (c CheckpointFolder, saves bool) {
	if j.State == sched.Done || j.Attempts == 0 || !j.Evidence.Shows() {
		return c, false
	}
	t, err := task.DecodeTask(j.Spec.Task)
	if err != nil {
		return c, false
	}
	c = CheckpointFolder{Job: id, Name: j.Spec.Name, Path: t.Checkpoint.Dir, Own: t.Checkpoint.Dir == ""}
	if c.Own {
		c.Path = shim.State(dir).Checkpoint(int32(id))
		if whole, failed := filepath.Abs(c.Path); failed == nil {
			c.Path = whole
		}
	}
	return c, true
}

// write writes the backup of a folder whose log was copied to log, and returns who lacks something.
func (b *BackedUp) write(dir, log string, out *os.File, version string) (lost []Lost, err error) {
	w, err := backup.NewWriter(out, backup.Head{Made: b.Made, Version: version})
	if err != nil {
		return nil, err
	}
	from, err := os.Open(log) // not as it was made: the database may have another file by now
	if err != nil {
		return nil, err
	}
	defer from.Close()
	if err = w.Add(backup.Log, from); err == nil {
		err = b.addTokens(w, dir)
	}
	if err == nil {
		lost, err = addNeeds(w, shim.State(dir), b.needs)
	}
	if err == nil {
		err = errors.Join(w.Close(), out.Sync())
	}
	if err != nil {
		return nil, err
	}
	info, err := out.Stat()
	if err != nil {
		return nil, err
	}
	b.Bytes = info.Size()
	return lost, syncDir(filepath.Dir(out.Name()))
}

// addTokens adds the tokens of a folder to its backup, if it has some.
func (b *BackedUp) addTokens(w *backup.Writer, dir string) error {
	tokens, err := os.ReadFile(filepath.Join(dir, access.TokensName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	b.Tokens = true
	return w.Add(backup.Tokens, bytes.NewReader(tokens))
}

// syncDir makes the names in a folder durable.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Restore makes an empty folder, or one that is not there, that of the manager whose backup a file is: whole or not at
// all, whenever it is stopped. An error about the file wraps backup.ErrBroken, store.ErrNotEmpty says that the folder
// is not empty, store.ErrBusy that another manager has it, access.ErrOthers that the file may be another user's. After
// an error the folder is as it was.
func Restore(file, dir string) (*BackedUp, error) {
	if err := access.CheckFile(file); err != nil {
		return nil, err
	}
	in, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("manager: %s is no regular file: %w", file, backup.ErrBroken)
	}
	b := &BackedUp{Bytes: info.Size()}
	_, err = backup.Read(in, func(string, io.Reader) error { return nil }) // before the folder is touched
	if err == nil {
		_, err = in.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, fmt.Errorf("manager: %s: %w", file, err)
	}
	to, err := store.Restore(dir)
	if err != nil {
		return nil, err
	}
	err = b.restore(in, to, dir)
	if failed := errors.Join(err, to.Close()); failed != nil {
		return nil, fmt.Errorf("manager: %s: %w", file, failed)
	}
	return b, nil
}

// restore fills a folder, which will be at dir, from a backup.
func (b *BackedUp) restore(in io.Reader, to *store.Restoring, dir string) error {
	parts := make(map[string]bool)
	kept, err := to.Kept()
	if err != nil {
		return err
	}
	head, err := backup.Read(in, func(name string, r io.Reader) error {
		parts[name] = true
		switch name {
		case backup.Log:
			return to.Write(r)
		case backup.Tokens:
			b.Tokens = true
			return to.Tokens(r)
		}
		return keepPart(shim.State(kept), name, r)
	})
	if err != nil {
		return err
	}
	b.Made = head.Made
	s, err := to.Open()
	if err == nil {
		err = to.AsOf(b.Made)
	}
	if err == nil {
		err = errors.Join(b.count(s, dir), s.Close())
	}
	if err != nil {
		return fmt.Errorf("%s in it: %w: %w", backup.Log, err, backup.ErrBroken)
	}
	b.Lost = without(parts, b.needs)
	return to.Commit()
}
