package inputs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"strconv"
	"time"

	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/trace"
)

// ParseRound reads --round; empty is 0.
func ParseRound(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x >= 0.001) || x > 1e9 {
		return 0, term.Usagef("--round %q, want seconds, from 0.001 to 1e9, such as 60", text)
	}
	return time.Duration(math.Ceil(x * 1e9)), nil
}

// IsFile refuses a folder where a file is to be read.
func IsFile(what, path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return term.Malformed(fmt.Errorf("%s: %s is a directory, want a file", what, path))
	}
	return nil
}

// LoadCluster reads a cluster and says what kind of error it is.
func LoadCluster(spec string) (*cluster.Cluster, error) {
	c, err := cluster.Load(spec)
	switch {
	case err == nil:
		return c, nil
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission):
		return nil, err
	}
	if dir := IsFile("cluster", spec); dir != nil {
		return nil, dir
	}
	if _, missing := os.Stat(spec); missing != nil {
		return nil, term.Usage(err) // a shorthand, or what was meant as one
	}
	return nil, term.Malformed(err)
}

// ReadTrace reads a trace; unit is a Go duration, a number of seconds or empty, steps for a trace that counts them.
func ReadTrace(path, format, unit string, steps *trace.StepTimes) (*trace.Trace, error) {
	o := trace.Options{Format: format, Steps: steps}
	var err error
	if o.Unit, err = ParseUnit(unit); err != nil {
		return nil, err
	}
	err = IsFile("trace", path)
	if err != nil {
		return nil, err
	}
	t, err := trace.Read(path, o)
	return t, TraceError(err)
}

// TraceError says what kind of error the reading of a trace returned.
func TraceError(err error) error {
	if parse := (*trace.ParseError)(nil); err == nil || errors.As(err, &parse) || errors.Is(err, trace.ErrWrite) {
		return err
	}
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		return fmt.Errorf("%w; want the path of a CSV file", err)
	}
	return term.Usage(err)
}

func ParseUnit(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	if x, err := strconv.ParseFloat(text, 64); err == nil && x*1e9 >= 1 && x <= 1e9 {
		return time.Duration(math.Round(x * 1e9)), nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, term.Usagef("--unit %q, want a duration such as 1ms, or seconds such as 0.001", text)
	}
	return d, nil
}

// readTable reads a file by one of package variability's readers.
func readTable[T any](what, path string, read func(io.Reader, string) (T, error)) (table T, err error) {
	err = IsFile(what, path)
	if err != nil {
		return table, err
	}
	f, err := os.Open(path)
	if err != nil {
		return table, fmt.Errorf("%s: %w", what, err)
	}
	defer f.Close()
	if table, err = read(f, path); err != nil {
		return table, term.Malformed(err)
	}
	return table, nil
}

// ReadScores reads a table of PM scores of all GPUs of c; nil without a path.
func ReadScores(what, path string, c *cluster.Cluster) (*variability.Scores, error) {
	if path == "" {
		return nil, nil
	}
	s, err := readTable(what, path, variability.ReadScores)
	if err != nil {
		return nil, err
	}
	return s, fitting(s, c)
}

// fitting refuses scores of more or fewer GPUs than there are: it is the table that must change.
func fitting(s *variability.Scores, c *cluster.Cluster) error {
	if n := c.MostGPUs(); len(s.GPUs) != n {
		return term.Malformed(fmt.Errorf("variability: %s: scores of %d GPUs, the cluster has %d, want a row for each", s.Name, len(s.GPUs), n))
	}
	return nil
}

// ReadOptional reads a file by one of our readers; the zero value without a path.
func ReadOptional[T any](what, path string, read func(io.Reader, string) (T, error)) (x T, err error) {
	if path == "" {
		return x, nil
	}
	return readTable(what, path, read)
}
