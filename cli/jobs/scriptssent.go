package jobs

import (
	"path/filepath"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/internal/strictyaml"
	"github.com/trainyard/trainyard/manager/jobfile"
)

// mostSent is how many bytes scripts have in all that go with jobs; a host on this machine reads longer ones itself.
const mostSent = 256 << 10

// scripts returns the texts of the scripts that jobs run as they are now, by path. For a host that is away they are
// those of this folder.
func (s *shell) scripts(cmd *cobra.Command, jobs []jobfile.Job) (map[string]string, error) {
	texts, size := make(map[string]string), 0
	for i := range jobs {
		t := &jobs[i].Task
		if t.Tree.Root != "" && s.away() {
			return nil, term.Refusedf("%s: --snapshot git: the working tree of this folder is not sent through a "+
				"context, want --snapshot script", term.OwnName(cmd))
		}
		if t.Script.At == 0 {
			continue
		}
		path := t.ScriptPath()
		if _, known := texts[path]; known {
			continue
		}
		from := path
		if s.away() {
			from = t.Command[t.Script.At]
		}
		text, err := strictyaml.ReadFile(from, mostSent)
		if err != nil {
			return nil, term.Usagef("%s: --snapshot: %w", term.OwnName(cmd), err)
		}
		if size += len(text); size > mostSent && s.away() {
			return nil, term.Refusedf("%s: --snapshot: %s has more than %d bytes, with those before it, want less "+
				"through a context", term.OwnName(cmd), filepath.Base(from), mostSent)
		}
		if s.away() && !utf8.Valid(text) {
			return nil, term.Refusedf("%s: --snapshot: %s is no text in UTF-8, want --snapshot none through a context",
				term.OwnName(cmd), filepath.Base(from))
		}
		if size <= mostSent && utf8.Valid(text) { // else the host reads it itself
			texts[path] = string(text)
		}
	}
	return texts, nil
}
