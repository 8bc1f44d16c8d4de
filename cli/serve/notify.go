package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os/exec"
	"strconv"
	"time"

	"github.com/trainyard/trainyard/driver/local"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
)

// notice is what a program hears of a job that is done, or was preempted.
type notice struct {
	Schema   string `json:"schema"` // trainyard.notice/v1
	Job      int    `json:"job"`
	Name     string `json:"name"`
	User     string `json:"user,omitempty"`
	Outcome  string `json:"outcome"` // finished, failed, cancelled, rejected or preempted
	ExitCode int    `json:"exit_code"`
	Text     string `json:"text,omitempty"` // what was said of its end
}

// Limits of notices: a program that hangs, or jobs that end by the thousand, must hold nothing up.
const (
	noticeTime   = 30 * time.Second // that a program may take
	noticeRest   = 5 * time.Second  // that it may go on once the manager stops
	mostUnspoken = 1000             // notices that wait; later ones are dropped
)

// notifier runs a program for each notice, one after the other, once what it says is durable. What a crash cuts off is
// not said again.
type notifier struct {
	program string
	log     *slog.Logger
	batch   []notice // under way
	queue   chan notice
	ctx     context.Context //nolint:containedctx // of the goroutine, which stop ends
	cancel  context.CancelFunc
	over    chan struct{}
}

var (
	_ eventlog.Sink    = (*notifier)(nil)
	_ eventlog.Batcher = (*notifier)(nil)
)

// newNotifier starts to notify. It is to be stopped.
func newNotifier(program string, log *slog.Logger) *notifier {
	n := &notifier{program: program, log: log, queue: make(chan notice, mostUnspoken), over: make(chan struct{})}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	go func() {
		defer close(n.over)
		for about := range n.queue {
			if err := n.report(&about); err != nil {
				n.log.Warn("no one was notified", "job", about.Job, "outcome", about.Outcome, "error", err)
			}
		}
	}()
	return n
}

// stop ends the notices; what waits has noticeRest.
func (n *notifier) stop() {
	close(n.queue)
	defer time.AfterFunc(noticeRest, n.cancel).Stop()
	<-n.over
}

// BeginBatch does nothing.
func (n *notifier) BeginBatch() {}

// Log notes the end of a job, or of an attempt that was preempted.
func (n *notifier) Log(v *sched.View, e *sched.Event) {
	if e.Job < 0 || int(e.Job) >= len(v.Jobs) {
		return
	}
	j := v.Job(e.Job)
	about := notice{Schema: "trainyard.notice/v1", Job: int(e.Job), Name: j.Spec.Name, User: j.Spec.User,
		Outcome: j.Outcome.String(), ExitCode: int(e.Code), Text: e.Text}
	switch done := j.State == sched.Done; {
	case e.Kind == sched.AttemptEnded && (done || e.Outcome == sched.Preempted):
		if !done {
			about.Outcome = e.Outcome.String()
		}
	case e.Kind == sched.Rejected, e.Kind == sched.JobCommanded && done && sched.Command(e.Code) == sched.CancelJob &&
		j.End == e.Time:
		about.ExitCode = 0
	default:
		return
	}
	n.batch = append(n.batch, about)
}

// EndBatch queues what was noted.
func (n *notifier) EndBatch() error {
	for _, about := range n.batch {
		select {
		case n.queue <- about:
		default:
			n.log.Warn("too many notices wait: one is dropped", "job", about.Job, "outcome", about.Outcome)
		}
	}
	n.batch = n.batch[:0]
	return nil
}

// report runs the program: without a shell, and with the environment that jobs inherit.
func (n *notifier) report(about *notice) error {
	text, err := json.Marshal(about)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(n.ctx, noticeTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, n.program)
	cmd.Env = append(local.Passed(), "TRAINYARD_JOB_ID="+strconv.Itoa(about.Job), "TRAINYARD_JOB_NAME="+about.Name,
		"TRAINYARD_JOB_USER="+about.User,
		"TRAINYARD_OUTCOME="+about.Outcome, "TRAINYARD_EXIT_CODE="+strconv.Itoa(about.ExitCode))
	cmd.Stdin, cmd.WaitDelay = bytes.NewReader(append(text, '\n')), time.Second
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", n.program, err)
	}
	return nil
}
