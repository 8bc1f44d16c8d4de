package inputs

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/report"
	"github.com/trainyard/trainyard/report/recorded"
)

// CommitRecorded writes the report of the run in a log, and gives the file its name, if a report is asked for. What of
// the log cannot be shown, or is left out, it says on stderr, nil = nowhere.
func CommitRecorded(w *term.Report, log io.Reader, name string, command []string, stderr io.Writer) error {
	if w == nil {
		return nil
	}
	doc, err := reportOf(log, name)
	if err != nil {
		return err
	}
	doc.Command = command
	for _, note := range doc.Notes {
		if stderr != nil {
			fmt.Fprintf(stderr, "trainyard: report: %s\n", note)
		}
	}
	if failed := w.Fill(doc, stderr); failed != nil {
		return failed
	}
	return w.Commit()
}

// reportOf returns the report of the run in a log.
func reportOf(log io.Reader, name string) (*report.Report, error) {
	r, err := eventlog.NewReader(log, name)
	if err != nil {
		return nil, term.Malformed(err)
	}
	s, short, err := recorded.Run(r)
	if err != nil {
		return nil, term.Malformed(err)
	}
	s.Settings = term.WithoutFolders(s.Settings)
	h := r.Header()
	doc := &report.Report{Systems: []report.System{s}, Facts: term.FactsOf(&h), Unit: term.UnitOf(&h)}
	if s.Parts > 1 {
		doc.Facts = append(doc.Facts, report.Fact{Name: "log", Text: fmt.Sprintf("%d parts, read as one run", s.Parts)})
	}
	if len(s.Earlier) > 0 {
		doc.Facts = append(doc.Facts, report.Fact{Name: "decided by", Text: eventlog.InTurn(s.Earlier, s.Name)})
	}
	if short != nil { // it names the file, of which a report has the last part alone
		says := strings.ReplaceAll(short.Error(), name, filepath.Base(name))
		doc.Notes = append(doc.Notes, fmt.Sprintf("The report ends before the log does: %s.", says))
	}
	return doc, nil
}
