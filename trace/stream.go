package trace

import (
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"os"

	"github.com/trainyard/trainyard/sched"
)

// Convert writes the trace in the file at path to w, as Read and Write together would, and returns what is known of it,
// jobs aside. It reads the file two or three times, row by row, so that its memory does not grow with the number of
// jobs, where that can be: rows are in order of submission, the file is a regular one and a table, not JSON, and no
// second table is joined. Otherwise it reads the whole trace first. Names that do not rise are remembered by a hash of
// 8 bytes each.
func Convert(path string, o Options, w io.Writer, format string, notes bool) (*Trace, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	t, out, err := survey(path, o, format, notes, &names{})
	if errors.Is(err, errNames) {
		t, out, err = survey(path, o, format, notes,
			&names{seed: maphash.MakeSeed(), hashes: make(map[uint64]struct{})})
	}
	switch {
	case errors.Is(err, errNoStream) || errors.Is(err, errNames):
		if t, err = Read(path, o); err != nil {
			return nil, err
		}
		return t, t.Write(w, format, notes)
	case err != nil:
		return nil, err
	}
	rows := newRows(w, out, t)
	_, err = scan(path, o, t.earliest(), func(j *Job) error {
		rows.write(j)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return t, rows.flush()
}

// survey shows each job to an output and checks that no name comes twice.
func survey(path string, o Options, format string, notes bool, seen *names) (t *Trace, out output, err error) {
	if out, err = newOutput(format, notes); err != nil {
		return nil, nil, err
	}
	i := 0
	t, err = scan(path, o, 0, func(j *Job) error {
		if !seen.fresh(j.Spec.Name) {
			return errNames
		}
		if why := out.see(j); why != "" {
			return unwritten(i, j, why)
		}
		i++
		return nil
	})
	return t, out, err
}

// errNames is returned where names do not say, or not surely, that no two are the same.
var errNames = errors.New("trace: names not surely distinct")

// names checks that no name comes twice: by their order alone if hashes is nil.
type names struct {
	last   string
	seed   maphash.Seed
	hashes map[uint64]struct{}
}

// fresh takes in the next name and reports whether no earlier one can be the same.
func (n *names) fresh(name string) bool {
	if n.hashes == nil {
		ok := n.last == "" || rises(n.last, name)
		n.last = name
		return ok
	}
	before := len(n.hashes)
	n.hashes[maphash.String(n.seed, name)] = struct{}{}
	return len(n.hashes) > before
}

// earliest is the submission that times are counted from in a file that gives them by the clock.
func (t *Trace) earliest() sched.Time {
	if layoutNamed(t.Format).clock {
		return sched.Time(t.Origin.UnixNano())
	}
	return 0
}

// errNoStream is returned by scan for a file whose jobs are only known all at once.
var errNoStream = errors.New("trace: not to be read row by row")

// scan reads the file at path row by row and gives each job to each, in the order of the file, its submission counted
// from zero. The job is valid until each returns.
func scan(path string, o Options, zero sched.Time, each func(*Job) error) (*Trace, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Mode()&fs.ModeType != 0 || o.Jobs != nil || o.Instances != nil {
		return nil, errNoStream
	}
	b, err := newBlocks(f)
	if err != nil {
		return nil, inFile(path, 1, err)
	}
	p := newParser(path, o)
	p.in.more = b.next
	p.jobs.jobs = make([]Job, 0, 1)
	p.jobs.each = func(j *Job) error {
		switch j.Spec.Submit -= zero; {
		case p.layout.profiled:
			return errProfiled
		case p.jobs.unsorted:
			return errNoStream
		}
		return each(j)
	}
	if err := p.all(); err != nil {
		return nil, err
	}
	return p.trace(), nil
}
