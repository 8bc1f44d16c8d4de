package serve

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/manager"
	"github.com/trainyard/trainyard/manager/store"
)

// repairFolder repairs a state folder and says what was done and what is lost.
func repairFolder(w io.Writer, dir string, asJSON bool) error {
	r, err := manager.Repair(dir)
	switch {
	case errors.Is(err, store.ErrBusy):
		return managerError(fmt.Errorf("%w: it is served, so there is nothing to repair; doctor without --repair says "+
			"what is wrong", err))
	case errors.Is(err, os.ErrNotExist):
		return term.Usagef("%s has no log of a manager, want a folder that was served", dir)
	case err != nil:
		return managerError(err)
	}
	p := &patient{dir: dir}
	return p.report(w, repairFindings(r), asJSON)
}

// repairFindings says what a repair did, as findings.
func repairFindings(r *manager.Repaired) (all []finding) {
	if r.Copy == "" {
		return []finding{{"log", fine, fmt.Sprintf("all of it can be used: %s, nothing was changed",
			term.Counted(r.Jobs, "job")), ""}}
	}
	for _, text := range r.Done {
		all = append(all, finding{"repair", note, text, ""})
	}
	for _, text := range r.Lost {
		all = append(all, finding{"lost", note, text, ""})
	}
	return append(all, finding{"log", fine, fmt.Sprintf("%s known; what was there before is in %s",
		term.Counted(r.Jobs, "job"), r.Copy), "`trainyard serve` of this folder goes on from there"})
}
