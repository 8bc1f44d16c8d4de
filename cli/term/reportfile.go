package term

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/report"
)

// ReportFlags are the flags of a verb that can write a report.
type ReportFlags struct {
	Path      string // "" = none is asked for
	Anonymous bool
	date      string
	limit     float64 // MB
}

// reportLimit is how many MB of data a report may have where no flag says it.
const reportLimit = 24

// Define adds the flags.
func (f *ReportFlags) Define(fs *pflag.FlagSet) {
	fs.StringVar(&f.Path, "report", "",
		"write what a browser shows of it to `FILE.html`: one file that asks no one for anything")
	fs.BoolVar(&f.Anonymous, "anonymous", false, "number jobs, users, models and nodes in the report")
	fs.StringVar(&f.date, "date", "", "`YYYY-MM-DD` that the report states (default: none, so that the same command "+
		"writes the same bytes)")
	fs.Float64Var(&f.limit, "report-limit", reportLimit, "`MB` of data in the report; beyond it the 2,000 jobs that "+
		"matter most are kept, and sums of the others")
}

// Check refuses what is no file, and flags that nothing comes of.
func (f *ReportFlags) Check() error {
	if f.Path == "-" {
		return Usagef("--report -: want a file; /dev/stdout is the standard output, ./- a file named -")
	}
	if f.Path == "" {
		switch {
		case f.Anonymous:
			return Usagef("--anonymous: it is about a report, and none is asked for; add --report FILE.html")
		case f.date != "":
			return Usagef("--date: it is about a report, and none is asked for; add --report FILE.html")
		case f.limit != 0 && f.limit != reportLimit:
			return Usagef("--report-limit: it is about a report, and none is asked for; add --report FILE.html")
		}
		return nil
	}
	if _, err := time.Parse(time.DateOnly, f.date); f.date != "" && err != nil {
		return Usagef("--date %q, want a day as YYYY-MM-DD, such as 2026-11-27", f.date)
	}
	if !(f.limit > 0 && f.limit <= 1e6) {
		return Usagef("--report-limit %v, want MB above 0, up to 1e6", f.limit)
	}
	return nil
}

// CheckInput refuses a report that would be written over a file that is read, and flags as Check does.
func (f *ReportFlags) CheckInput(read ...PathUse) error {
	if f.Path != "" {
		for _, r := range read {
			if r.Path != "" && SamePath(f.Path, r.Path) {
				return Usagef("--report %s: that is the %s that is read, want another file to write", f.Path, r.What)
			}
		}
	}
	return f.Check()
}

// Report is a report that is being written: nothing has its name until it is whole.
type Report struct {
	flags *ReportFlags
	file  *OutFile
}

// Create creates the file, so that a wrong name is found before anything runs; nil if none is asked for, which all
// methods take.
func (f *ReportFlags) Create() (*Report, error) {
	if f.Path == "" {
		return nil, nil //nolint:nilnil // as said
	}
	file, err := CreateOut(f.Path)
	if err != nil {
		return nil, err
	}
	return &Report{f, file}, nil
}

// Discard removes what there is of a report that was not committed.
func (w *Report) Discard() {
	if w != nil {
		w.file.Discard()
	}
}

// Fill writes a report into the file, and what it leaves out to stderr, nil = nowhere.
func (w *Report) Fill(r *report.Report, stderr io.Writer) error {
	if w == nil {
		return nil
	}
	r.Version, r.Anonymous, r.Limit = OwnBuild().Version, w.flags.Anonymous, int64(w.flags.limit*1e6)
	if w.flags.date != "" {
		r.Facts = append(r.Facts, report.Fact{Name: "date", Text: w.flags.date})
	}
	left, err := r.Write(w.file)
	if err == nil {
		err = w.file.Flush()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", w.flags.Path, pathCause(err))
	}
	if left != "" && stderr != nil {
		fmt.Fprintf(stderr, "trainyard: report: %s\n", left)
	}
	return nil
}

// Commit gives the file its name.
func (w *Report) Commit() error {
	if w == nil {
		return nil
	}
	return w.file.Commit()
}

// UnitOf returns what jobs of a log held: slot where all that there is are CPU slots, else GPU.
func UnitOf(h *eventlog.Header) string {
	if len(h.Types) == 1 && h.Types[0] == device.SlotType {
		return "slot"
	}
	return "GPU"
}

// FactsOf returns what the header of a log says of a run, without paths of folders.
func FactsOf(h *eventlog.Header) (list []report.Fact) {
	for _, fact := range []report.Fact{{Name: "trace", Text: filepath.Base(h.Trace)},
		{Name: "cluster", Text: filepath.Base(h.Cluster)}, {Name: "preset", Text: h.Preset}} {
		if fact.Text != "" && fact.Text != "." {
			list = append(list, fact)
		}
	}
	return list
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
