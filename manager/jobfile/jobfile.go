package jobfile

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/internal/strictyaml"
	"github.com/trainyard/trainyard/sched"
)

// Limits of a list of jobs.
const (
	MaxFile  = 2 << 20   // bytes of a file: the tree of YAML takes up to 400 times as much memory
	MaxJobs  = 100_000   // jobs, copies counted
	MaxAfter = 1_000_000 // pairs of a job and one that it waits for
	// bytes of the commands and environments of all jobs, copies counted: they are stored with each
	MaxTotal = 256 << 20
	MaxGPUs  = 1024             // GPUs of a job
	MaxName  = 64               // bytes of a job's name
	MaxDelay = 8760 * time.Hour // of submit and wall_time: a year
)

// File is a list of jobs. No one changes it after it was read.
type File struct {
	Path string // as it was given
	Hash string // SHA-256 in hexadecimal of what the jobs are, not of how the file is written; see hash
	Jobs []Job  // never none; by Submit, and at one moment as in the file, but never before one that a job waits for
}

// Job is one job of a list.
type Job struct {
	Submit time.Duration // when it is submitted, after the start; >= 0
	// valid; Submit is that of the job, Name is unique, After are places in File.Jobs before the job's own
	Spec sched.JobSpec
	Task task.Task // valid; alike jobs share its command and environment
	// Inherit: it is to have the environment of the shell that it is submitted from, which is not part of the file
	Inherit bool
	// Existing are jobs that it waits for and that are not in its list, none of them twice: see Wait
	Existing []Existing
}

// Read reads the file at path. A file that cannot be read gives an error that wraps the reason, such as fs.ErrNotExist.
func Read(path string) (*File, error) {
	text, err := strictyaml.ReadFile(path, MaxFile)
	if err != nil {
		if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
			err = pe.Err
		}
		return nil, fmt.Errorf("jobfile: %s: %w, want a YAML file of jobs", path, err)
	}
	return Parse(text, path)
}

// Parse reads a YAML list of jobs, see the package comment. name is the path of the file: it stands in errors, all of
// which have the form "jobfile: FILE:LINE:COLUMN: what, want WHAT", and its folder is the one that dir is relative to.
func Parse(yaml []byte, name string) (*File, error) {
	p, order, err := read(yaml, name, false)
	if err != nil {
		return nil, err
	}
	f := &File{Path: name, Jobs: p.build(order)}
	f.Hash = p.hash(order, f.Jobs)
	return f, nil
}

// ParseJobs is Parse for those who want the jobs alone, of which some may wait for jobs that exist already.
func ParseJobs(yaml []byte, name string) ([]Job, error) {
	p, order, err := read(yaml, name, true)
	if err != nil {
		return nil, err
	}
	return p.build(order), nil
}

// read returns the jobs of a file and their order. others: they may wait for jobs that are not in the file.
func read(yaml []byte, name string, others bool) (p *plan, order []int, err error) {
	path, err := filepath.Abs(name)
	if err != nil {
		return nil, nil, fmt.Errorf("jobfile: %s: %w, want a path", name, err)
	}
	r := &reader{&strictyaml.Reader{Prefix: "jobfile", File: name}, filepath.Dir(path), others, nil}
	doc := r.Document(yaml, MaxFile, "jobs")
	var list []entry
	if r.Err() == nil {
		list = r.entries(doc)
	}
	if r.Err() == nil {
		p, order = r.plan(list)
	}
	return p, order, r.Err()
}

// reader reads one list.
type reader struct {
	*strictyaml.Reader
	folder string   // of the file, absolute
	others bool     // jobs may wait for jobs that are not in the file
	fixed  []string // keys that are none here
}

// entries returns the items of the list.
func (r *reader) entries(doc ast.Node) []entry {
	var defaults, jobs ast.Node // defaults may stand below the jobs
	r.Mapping(doc, "the document", []strictyaml.Field{
		strictyaml.Key("defaults", func(_ string, n ast.Node) { defaults = n }),
		strictyaml.Key("jobs", func(_ string, n ast.Node) { jobs = n }),
	})
	base := newEntry(r.folder)
	if defaults != nil {
		r.either(defaults, "retries", "retry")
		r.Mapping(defaults, "defaults", r.shared(&base))
	}
	if jobs == nil {
		r.Fail(doc, "no jobs, want a list of at least one")
		return nil
	}
	seq, ok := jobs.(*ast.SequenceNode)
	if !ok || len(seq.Values) == 0 {
		r.Fail(jobs, "%s, want a list of at least one", strictyaml.Describe("jobs", jobs))
		return nil
	}
	var list []entry
	count, size := 0, 0
	for _, item := range seq.Values {
		e := r.entry(item, base)
		if r.Err() != nil {
			return nil
		}
		count += e.copies()
		size += e.copies() * e.task.Size()
		switch {
		case count > MaxJobs:
			r.Fail(item, "%d jobs in all, want at most %d", count, MaxJobs)
		case size > MaxTotal:
			r.Fail(item, "more than %d MiB of commands and environments in all, want less", MaxTotal>>20)
		}
		list = append(list, e)
	}
	return list
}
