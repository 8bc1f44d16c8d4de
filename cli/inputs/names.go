package inputs

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/trace"
)

// SystemsNamed finds the rows of the systems and trims their names.
func SystemsNamed(names []string) ([]*system.Info, error) {
	var infos []*system.Info
	for i, name := range names {
		names[i] = strings.TrimSpace(name)
		if names[i] == "" {
			return nil, term.Usagef("--system %q has an empty name, want NAME,... such as fifo,las",
				strings.Join(names, ","))
		}
		info, err := system.Named(names[i])
		if err != nil {
			return nil, term.Usage(err)
		}
		if slices.Contains(infos, info) {
			return nil, term.Usagef("--system: %s twice, want it once", name)
		}
		infos = append(infos, info)
	}
	return infos, nil
}

// SystemNames returns the names of all systems.
func SystemNames() []string {
	var names []string
	for _, info := range system.Table() {
		names = append(names, info.Name)
	}
	return names
}

// FormatNames returns the names of the formats of traces.
func FormatNames() []string {
	var names []string
	for _, f := range trace.Formats() {
		names = append(names, f.Name)
	}
	return names
}

// FormatsHelp says how traces are read: the formats and their columns.
func FormatsHelp() string { return formatsHelp() }

var formatsHelp = sync.OnceValue(func() string {
	var b strings.Builder
	b.WriteString(term.Wrap("A trace is a table, may be gzipped, whose header line names the columns, in any order, "+
		"and thereby "+
		"shows the format. Times are in seconds unless the format says otherwise; --unit says another unit of a "+
		"tiresias trace. "+
		"Columns that the format does not know are refused. Columns in brackets may be left out. A format without "+
		"header line is known "+
		"by its first row. Formats (--format):", term.DefaultWidth, 0) + "\n")
	for _, f := range trace.Formats() {
		b.WriteString("\n  " + term.Wrap(f.Name+": "+f.Line, term.DefaultWidth, 4) + "\n")
		columns := strings.Join(f.Columns, ", ")
		if len(f.Optional) > 0 {
			columns += " [" + strings.Join(f.Optional, ", ") + "]"
		}
		if len(f.Ignored) > 0 {
			columns += fmt.Sprintf(" and %d that are read over, such as %s", len(f.Ignored), f.Ignored[0])
		}
		b.WriteString("    " + term.Wrap(columns, term.DefaultWidth, 4) + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
})
