package task

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/trainyard/trainyard/sched"
)

// OutputModes are the words that OutputFile.Mode knows: attempts append, each starts with an empty file, or the first
// alone does.
var OutputModes = []string{"append", "truncate", "once"}

// OutputFile says to which files of its user a job writes, apart from what is kept for logs. The zero value: none.
type OutputFile struct {
	File  string `json:"file,omitempty"`  // path with the patterns of Expand, relative to Task.Dir
	Error string `json:"error,omitempty"` // the same, for standard error; "" = where the output goes
	Mode  string `json:"mode,omitempty"`  // one of OutputModes; "" = append
}

// Truncates reports whether an attempt starts with an empty file; attempts are numbered from 1.
func (o *OutputFile) Truncates(attempt int32) bool {
	return o.Mode == "truncate" || o.Mode == "once" && attempt <= 1
}

// CheckOutput returns what is wrong with a path of an OutputFile, or nil.
func CheckOutput(path string) error {
	switch {
	case path == "" || strings.IndexByte(path, 0) >= 0 || !utf8.ValidString(path) || len(path) > MaxDir:
		return fmt.Errorf("%q, want the path of a file, at most %d bytes of text", short(path), MaxDir)
	case path[0] == '~':
		return fmt.Errorf("%q, want a path without ~ (no shell reads it; ./~ is a file of that name)", short(path))
	case strings.HasSuffix(path, "/") || slices.Contains([]string{".", ".."}, filepath.Base(path)):
		return fmt.Errorf("%q, want the path of a file, not of a folder", short(path))
	}
	for rest := path; ; {
		_, after, found := strings.Cut(rest, "%")
		if !found {
			return nil
		}
		digits := len(after) - len(strings.TrimLeft(after, "0123456789"))
		if rest = after[digits:]; rest == "" || !strings.Contains(patterns, rest[:1]) || digits > 1 {
			return fmt.Errorf("%q has %%%s, want %%j, %%x, %%a, %%A, %%u or %%%%", short(path),
				after[:min(len(after), digits+1)])
		}
		rest = rest[1:]
	}
}

// patterns are the letters that follow % in a path of an OutputFile.
const patterns = "jxaAu%"

// noArray is %a of a job that is no task of an array, as Slurm has it.
const noArray = 1<<32 - 2

// Expand returns the absolute path that a pattern of an OutputFile stands for: %j is the number of the job, %x its
// name, of a task that of its array, %A the number of its array, or its own, %a its index in that, %u its user, %% a %.
// A digit in between is the least width of a number, filled by zeros. A / in a name or user becomes _. A pattern in
// doubt stays as it is.
func (t *Task) Expand(pattern string, id sched.JobID, spec *sched.JobSpec) string {
	array, index, name := id, int64(noArray), spec.Name
	if a := spec.Ties.Array; a.Size > 0 {
		array, index = a.First(id), int64(a.Index)
		name = strings.TrimSuffix(name, "_"+strconv.Itoa(int(a.Index)))
	}
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		if pattern[i] != '%' || i+1 == len(pattern) {
			b.WriteByte(pattern[i])
			continue
		}
		i++
		width := 0
		if c := pattern[i]; c >= '0' && c <= '9' && i+1 < len(pattern) {
			width = int(c - '0')
			i++
		}
		switch pattern[i] {
		case 'j':
			fmt.Fprintf(&b, "%0*d", width, id)
		case 'A':
			fmt.Fprintf(&b, "%0*d", width, array)
		case 'a':
			fmt.Fprintf(&b, "%0*d", width, index)
		case 'x':
			b.WriteString(strings.ReplaceAll(name, "/", "_"))
		case 'u':
			b.WriteString(strings.ReplaceAll(spec.User, "/", "_"))
		case '%':
			b.WriteByte('%')
		default:
			b.WriteString("%" + strconv.Itoa(width) + pattern[i:i+1])
		}
	}
	return t.Within(b.String())
}

// Within returns a path as an absolute one: Dir is where a relative one starts.
func (t *Task) Within(path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(t.Dir, path)
	}
	return filepath.Clean(path)
}

// checkOutput returns what is wrong with Output and MaxOutput together, or nil.
func (t *Task) checkOutput() error {
	o := &t.Output
	switch {
	case o.Mode != "" && !slices.Contains(OutputModes, o.Mode):
		return fmt.Errorf("output mode %q, want one of %s", short(o.Mode), strings.Join(OutputModes, ", "))
	case o.File == "" && *o != OutputFile{}:
		return fmt.Errorf("output without file, want the file next to error and mode")
	case o.File != "" && t.MaxOutput > 0:
		return fmt.Errorf("output max next to file, want one of them: nothing is removed from a file of yours")
	case o.File != "" && CheckOutput(o.File) != nil:
		return fmt.Errorf("output file %w", CheckOutput(o.File))
	case o.Error != "" && CheckOutput(o.Error) != nil:
		return fmt.Errorf("output error %w", CheckOutput(o.Error))
	}
	return nil
}
