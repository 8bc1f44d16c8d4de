package term

import (
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/report"
)

// ReportFlags are the flags of a verb that can write a report.
type ReportFlags struct {
	Path      string // "" = none is asked for
	Anonymous bool
}

// Define adds the flags.
func (f *ReportFlags) Define(fs *pflag.FlagSet) {
	fs.StringVar(&f.Path, "report", "",
		"write what a browser shows of it to `FILE.html`: one file that asks no one for anything")
	fs.BoolVar(&f.Anonymous, "anonymous", false, "number jobs, users, models and nodes in the report")
}

// Check refuses what is no file.
func (f *ReportFlags) Check() error {
	switch {
	case f.Path == "-":
		return Usagef("--report -: want a file; /dev/stdout is the standard output, ./- a file named -")
	case f.Path == "" && f.Anonymous:
		return Usagef("--anonymous: it is about a report, and none is asked for; add --report FILE.html")
	}
	return nil
}

// Create creates the file, so that a wrong name is found before anything runs; nil if none is asked for.
func (f *ReportFlags) Create() (*OutFile, error) {
	if f.Path == "" {
		return nil, nil
	}
	return CreateOut(f.Path)
}

// Fill writes a report into the file, which has its name only once it is committed.
func (f *ReportFlags) Fill(out *OutFile, r *report.Report) error {
	r.Version, r.Anonymous = OwnBuild().Version, f.Anonymous
	if err := r.Write(out); err != nil {
		return err
	}
	return out.Flush()
}

// WriteRecorded writes the report of the run in a log, whole or not at all; nothing if none is asked for.
func (f *ReportFlags) WriteRecorded(log io.Reader, name string, command []string) error {
	out, err := f.Create()
	if out == nil || err != nil {
		return err
	}
	defer out.Discard()
	r, err := eventlog.NewReader(log, name)
	if err != nil {
		return err
	}
	s, err := report.Recorded(r)
	if err != nil {
		return err
	}
	if another, _ := r.Another(); another {
		return Usagef("--report: the log has several parts, want one")
	}
	s.Settings = WithoutFolders(s.Settings)
	doc := &report.Report{Command: command, Systems: []report.System{s}}
	h := r.Header()
	for _, fact := range []report.Fact{{Name: "trace", Text: filepath.Base(h.Trace)},
		{Name: "cluster", Text: filepath.Base(h.Cluster)}, {Name: "preset", Text: h.Preset}} {
		if fact.Text != "" && fact.Text != "." {
			doc.Facts = append(doc.Facts, fact)
		}
	}
	if err := f.Fill(out, doc); err != nil {
		return err
	}
	return out.Commit()
}

// silent are flags that change nothing of what a report shows.
var silent = []string{"report", "json", "quiet", "jobs-out", "events-out"}

// CommandOf returns the command line as given, with the last part of each path alone: a report is sent to others.
func CommandOf(cmd *cobra.Command) []string {
	words := strings.Fields(cmd.CommandPath())
	for _, arg := range cmd.Flags().Args() {
		words = append(words, lastPart(arg))
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if slices.Contains(silent, f.Name) {
			return
		}
		list := []string{f.Value.String()}
		if v, ok := f.Value.(pflag.SliceValue); ok {
			list = v.GetSlice()
			if f.Value.Type() == "stringSlice" {
				list = []string{strings.Join(list, ",")}
			}
		}
		for _, value := range list {
			words = append(words, "--"+f.Name)
			if f.Value.Type() != "bool" {
				words = append(words, lastPart(value))
			}
		}
	})
	return words
}

// lastPart returns a value, or KEY=VALUE, without the folders of a path.
func lastPart(value string) string {
	key, path, ok := strings.Cut(value, "=")
	if !ok {
		key, path = "", value
	} else {
		key += "="
	}
	if !strings.ContainsRune(path, '/') {
		return value
	}
	return key + filepath.Base(path)
}

// WithoutFolders returns settings with the last part of each path alone.
func WithoutFolders(settings map[string]string) map[string]string {
	short := make(map[string]string, len(settings))
	for k, v := range settings {
		short[k] = lastPart(v)
	}
	return short
}
