package whatifs

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/trainyard/trainyard/api"
)

const (
	// Patience is how long a question lives about which no one asks any more.
	Patience = 30 * time.Second
	// kept is how many answers are kept.
	kept = 16
)

// Runner answers questions one at a time. Anyone may call it.
type Runner struct {
	command  []string // with all but the systems; they follow as --system A,B
	patience time.Duration

	mu   sync.Mutex
	list []*question // the latest last; all but the last are over
}

// New returns a runner of a command that writes lines of Progress to its standard error, and its answer to its standard
// output. A question lives for patience while no one asks about it; 0 = Patience.
func New(command []string, patience time.Duration) *Runner {
	if patience == 0 {
		patience = Patience
	}
	return &Runner{command: command, patience: patience}
}

// Progress is a line about how far a command has come.
type Progress struct {
	Done   int    `json:"simulated"` // systems
	Of     int    `json:"of"`
	System string `json:"system"` // that is next
}

// question is one that was asked, by one or several.
type question struct {
	doc    api.WhatIf
	askers []string
	child  *child
	idle   *time.Timer // cancels it
}

// over reports whether there is nothing more to come.
func (q *question) over() bool { return q.doc.State != api.WhatIfRunning }

// Ask asks about the log up to event seq, in the name of who. The same question about the same log is asked once,
// unless it failed or was cancelled. api.ErrBusy: another question is being answered.
func (r *Runner) Ask(who string, systems []string, seq uint64) (api.WhatIf, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, q := range r.list {
		same := q.doc.Seq == seq && slices.Equal(q.doc.Systems, systems)
		if same && (q.doc.State == api.WhatIfDone || !q.over()) {
			if !slices.Contains(q.askers, who) {
				q.askers = append(q.askers, who)
			}
			r.asked(q)
			return q.doc, nil
		}
	}
	if n := len(r.list); n > 0 && !r.list[n-1].over() {
		return api.WhatIf{}, fmt.Errorf("%w: a question of %s is being simulated, want it over, or cancelled",
			api.ErrBusy, strings.Join(r.list[n-1].askers, " and "))
	}
	q := &question{askers: []string{who}, doc: api.WhatIf{Schema: "trainyard.whatif-run/v1", ID: rand.Text(),
		State: api.WhatIfRunning, Seq: seq, Systems: append([]string{}, systems...)}}
	command := slices.Clone(r.command)
	if len(systems) > 0 {
		command = append(command, "--system", strings.Join(systems, ","))
	}
	var err error
	if q.child, err = start(command, func(p Progress) { r.progressed(q, p) },
		func(answer []byte, failed error) { r.ended(q, answer, failed) }); err != nil {
		return api.WhatIf{}, fmt.Errorf("what if: %w", err)
	}
	r.list = append(r.list, q)
	if n := len(r.list) - kept; n > 0 {
		r.list = slices.Delete(r.list, 0, n)
	}
	q.idle = time.AfterFunc(r.patience, func() { r.abandon(q) })
	return q.doc, nil
}

// Get returns how far a question has come, which keeps it alive.
func (r *Runner) Get(id string) (api.WhatIf, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	q := r.find(id)
	if q == nil {
		return api.WhatIf{}, unknown(id)
	}
	r.asked(q)
	return q.doc, nil
}

// Cancel takes back the question of who; it ends when no one is left who asked it, or at once if all is said of all.
func (r *Runner) Cancel(id, who string, all bool) (api.WhatIf, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	q := r.find(id)
	if q == nil {
		return api.WhatIf{}, unknown(id)
	}
	q.askers = slices.DeleteFunc(q.askers, func(name string) bool { return name == who })
	if len(q.askers) == 0 || all {
		r.cancel(q)
	}
	return q.doc, nil
}

// Close ends what is running.
func (r *Runner) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, q := range r.list {
		r.cancel(q)
	}
}

func unknown(id string) error { return fmt.Errorf("what-if %q: %w", id, api.ErrNoWhatIf) }

func (r *Runner) find(id string) *question {
	for _, q := range r.list {
		if q.doc.ID == id {
			return q
		}
	}
	return nil
}

// asked has a question live on.
func (r *Runner) asked(q *question) {
	if !q.over() && q.idle != nil {
		q.idle.Reset(r.patience)
	}
}

func (r *Runner) abandon(q *question) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cancel(q)
}

// cancel kills the process of a question that is not over.
func (r *Runner) cancel(q *question) {
	if q.over() {
		return
	}
	q.doc.State = api.WhatIfCancelled
	q.idle.Stop()
	q.child.kill()
}

func (r *Runner) progressed(q *question, p Progress) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !q.over() {
		q.doc.Done, q.doc.Of, q.doc.Now = p.Done, p.Of, p.System
	}
}

// ended notes what a process came to.
func (r *Runner) ended(q *question, answer []byte, failed error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if q.over() {
		return
	}
	if q.idle != nil {
		q.idle.Stop()
	}
	q.doc.Now = ""
	if failed == nil && !json.Valid(answer) {
		failed = errors.New("it wrote no document")
	}
	if failed != nil {
		q.doc.State, q.doc.Error = api.WhatIfFailed, failed.Error()
		return
	}
	q.doc.State, q.doc.Done, q.doc.Result = api.WhatIfDone, q.doc.Of, answer
}
