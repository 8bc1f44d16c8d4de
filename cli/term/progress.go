package term

import (
	"io"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
)

// patience is how long a run may take before a bar appears.
const patience = 500 * time.Millisecond

// Progress counts finished jobs of runs, which may be under way at once, and shows a bar on a terminal once they have
// taken longer than patience.
type Progress struct {
	w     io.Writer // nil = show nothing
	label string
	total int
	began time.Time

	mu   sync.Mutex
	done int
	bar  *progressbar.ProgressBar // nil until shown
}

// part is a run that Progress counts.
type part struct {
	of           *Progress
	events, done int // not counted yet
}

var _ eventlog.Sink = (*part)(nil)

// NewProgress shows on w if that is a terminal; w may be nil.
func NewProgress(w io.Writer, label string, total int) *Progress {
	p := &Progress{label: label, total: total, began: time.Now()}
	if _, ok := Terminal(w); ok {
		p.w = w
	}
	return p
}

// Sinks returns what is to hear of the events of a run; nothing if p would not show anything.
func (p *Progress) Sinks() []eventlog.Sink {
	if p.w == nil {
		return nil
	}
	return []eventlog.Sink{&part{of: p}}
}

// Log counts one event. The bar is looked at once in a thousand of them.
func (p *part) Log(_ *sched.View, e *sched.Event) {
	if e.Kind == sched.AttemptEnded && e.Outcome == sched.Finished {
		p.done++
	}
	if p.events++; p.events%1024 == 0 {
		p.of.add(p.done)
		p.done = 0
	}
}

// add counts finished jobs.
func (p *Progress) add(jobs int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += jobs
	if p.bar == nil {
		if time.Since(p.began) < patience {
			return
		}
		p.bar = progressbar.NewOptions(p.total, progressbar.OptionSetWriter(p.w),
			progressbar.OptionSetDescription(p.label),
			progressbar.OptionShowCount(), progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionClearOnFinish(),
			progressbar.OptionSetWidth(30))
	}
	_ = p.bar.Set(p.done) // a bar that cannot be drawn is no reason to fail
}

// Close clears the bar.
func (p *Progress) Close() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}
