package kept

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/driver/local/beneath"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/sched"
)

// Removal removes what the attempts of jobs that are done left in a state folder. Jobs can write there: no link of
// theirs is followed, and what lies outside of a job's own folder stays.
type Removal struct {
	Dir  string   // state folder, absolute
	Runs bool     // run folders whole; false: outputs alone
	Dry  bool     // only say what would be removed
	Keep []string // folders, absolute, that are not to be removed with a run folder
}

// Job removes what the attempts of a job left, and adds to doc what that was. A job whose shim lives is left alone. The
// error is about the folder; what cannot be removed of an attempt is in doc.
func (r *Removal) Job(job sched.JobID, doc *api.Cleaned) error {
	folder, err := r.open(job)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("job %d: %w", job, err)
	}
	defer folder.Close()
	lock, held := r.lock(folder, job)
	if lock != nil {
		defer lock.Close()
	}
	entries, err := fs.ReadDir(folder.FS(), ".")
	if err != nil {
		return fmt.Errorf("job %d: %w", job, err)
	}
	before := doc.Attempts
	for _, e := range entries {
		number, bad := strconv.ParseInt(e.Name(), 10, 32)
		if bad != nil || !e.IsDir() || strconv.FormatInt(number, 10) != e.Name() {
			continue
		}
		why := r.inTheWay(job, int32(number), held)
		if why == "" {
			why = r.attempt(folder, e.Name(), doc)
		}
		if why != "" {
			doc.Left = append(doc.Left, api.Left{Job: int(job), Attempt: int(number), Why: why})
		}
	}
	if doc.Attempts > before {
		doc.Jobs++
	}
	return nil
}

// open opens the folder of a job, on the way to which no link is followed.
func (r *Removal) open(job sched.JobID) (*os.Root, error) {
	f, err := beneath.Handle(r.Dir, filepath.Join("jobs", strconv.Itoa(int(job))))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return os.OpenRoot(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
}

// lock takes the lock of a job, so that no shim of it starts. held: one has it. Without the file both are nothing.
func (r *Removal) lock(folder *os.Root, job sched.JobID) (lock *os.File, held bool) {
	if _, err := folder.Lstat("lock"); err != nil {
		return nil, false
	}
	lock, err := shim.Lock(filepath.Join(shim.State(r.Dir).Job(int32(job)), "lock"), false)
	return lock, errors.Is(err, shim.ErrHeld)
}

// inTheWay says why an attempt is left alone; "" = it is not.
func (r *Removal) inTheWay(job sched.JobID, number int32, held bool) string {
	dir := shim.State(r.Dir).RunDir(int32(job), number)
	if alive, err := dir.Alive(); held || err == nil && alive.Lives() {
		return "its shim lives"
	}
	if !r.Runs {
		return ""
	}
	inside := func(kept string) bool { return kept == string(dir) || strings.HasPrefix(kept, string(dir)+"/") }
	if slices.ContainsFunc(r.Keep, inside) {
		return "checkpoints lie in it"
	}
	return ""
}

// attempt removes an attempt's output, or all of it, and says what keeps it from that.
func (r *Removal) attempt(folder *os.Root, name string, doc *api.Cleaned) (why string) {
	what := name
	if !r.Runs {
		what = filepath.Join(name, filepath.Base(shim.RunDir("").Output()))
	}
	info, err := folder.Lstat(what)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ""
	case err == nil && !r.Runs && !info.Mode().IsRegular():
		return "its output is no file"
	case err != nil:
		return err.Error()
	}
	bytes := takenBy(folder, what)
	if !r.Dry {
		if err := folder.RemoveAll(what); err != nil {
			return err.Error()
		}
	}
	doc.Attempts++
	doc.Bytes += bytes
	return ""
}

// takenBy returns how many bytes of the disk a file, or all files of a folder, take; those with other names elsewhere
// take none, as they stay.
func takenBy(folder *os.Root, path string) (sum int64) {
	// what cannot be read does not count
	_ = fs.WalkDir(folder.FS(), path, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // as said
		}
		info, err := e.Info()
		if err != nil {
			return nil //nolint:nilerr // as said
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok && (e.IsDir() || st.Nlink == 1) {
			sum += st.Blocks * 512
		}
		return nil
	})
	return sum
}
