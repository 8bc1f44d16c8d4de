package simulate

import (
	"errors"
	"fmt"
	"slices"
)

// failedRun is a system whose run ended with an error, where others did not.
type failedRun struct {
	system string
	err    error
}

// failedDoc is one of them in the document of --json.
type failedDoc struct {
	System string `json:"system"`
	Error  string `json:"error"`
}

// takeFailed moves the runs that failed from those that are printed to c.failed, with their logs, which are not kept.
// It returns their errors as one, whose exit code is that of the first; nil if none failed.
func (c *comparison) takeFailed(out *outputs) error {
	var errs []error
	several := len(c.runs) > 1
	for i := len(c.runs) - 1; i >= 0; i-- {
		r := &c.runs[i]
		if r.err == nil {
			continue
		}
		f := failedRun{r.request.System, r.err}
		if several {
			r.err = fmt.Errorf("%s: %w", f.system, r.err)
		}
		errs, c.failed = append(errs, r.err), append(c.failed, f)
		c.runs = slices.Delete(c.runs, i, i+1)
		if len(out.events) > 0 {
			out.events[i].Discard()
			out.events = slices.Delete(out.events, i, i+1)
		}
	}
	slices.Reverse(errs)
	slices.Reverse(c.failed)
	return errors.Join(errs...)
}

// failedNotes says below the table which systems are missing in it.
func (c *comparison) failedNotes() (notes []string) {
	what := "has no row"
	if c.seeds > 0 {
		what = "does not count"
	}
	for i := range c.failed {
		notes = append(notes, fmt.Sprintf("%s failed and %s: %v", c.failed[i].system, what, c.failed[i].err))
	}
	return notes
}

// failedDocs is the same for the document.
func (c *comparison) failedDocs() (docs []failedDoc) {
	for i := range c.failed {
		docs = append(docs, failedDoc{c.failed[i].system, c.failed[i].err.Error()})
	}
	return docs
}
