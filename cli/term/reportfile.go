package term

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/trainyard/trainyard/report"
)

// ReportFlags are the flags of a verb that can write a report.
type ReportFlags struct {
	Path      string // "" = none is asked for
	Anonymous bool
}

// Define adds the flags.
func (f *ReportFlags) Define(fs *pflag.FlagSet) {
	fs.StringVar(&f.Path, "report", "", "write what a browser shows of it to `FILE.html`: one file that asks no one for anything")
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

// Fill writes the report of cmd into the file, which has its name only once it is committed.
func (f *ReportFlags) Fill(cmd *cobra.Command, out *OutFile, r *report.Report) error {
	r.Version, r.Anonymous = OwnBuild().Version, f.Anonymous
	r.Command = commandOf(cmd)
	if err := r.Write(out); err != nil {
		return err
	}
	return out.Flush()
}

// silent are flags that change nothing of what a report shows.
var silent = []string{"report", "json", "quiet", "jobs-out", "events-out"}

// commandOf returns the command line as given, with the last part of each path alone: a report is sent to others.
func commandOf(cmd *cobra.Command) []string {
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
