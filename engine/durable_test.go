package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/order"
	"github.com/trainyard/trainyard/stage/place"
)

// answers is a driver that says what it is given to say, and notes what it hears and when.
type answers struct {
	list     [][]sched.Event // the first is what Sync says
	now      sched.Time
	reported []string
}

func (d *answers) Sync(ctx context.Context, _ *sched.View) ([]sched.Event, error) {
	return d.Next(ctx, sched.Never)
}

func (d *answers) Next(context.Context, sched.Time) ([]sched.Event, error) {
	if len(d.list) == 0 {
		return nil, io.EOF
	}
	events := d.list[0]
	d.list = d.list[1:]
	if len(events) > 0 {
		d.now = events[len(events)-1].Time
	}
	return events, nil
}

func (d *answers) Apply(_ context.Context, p sched.Plan) error {
	for i := range p.Actions {
		d.reported = append(d.reported, orderText(&p.Actions[i]))
	}
	return nil
}

func (d *answers) Now() sched.Time { return d.now }

// batchLog is a Batcher that writes down in which order all happens, and fails at the end of a batch.
type batchLog struct {
	d        *answers
	failAt   int // 0 = never
	batch    int
	events   int // of the batch under way
	reported int // orders the driver had heard of when it started
	err      error
}

var errDisk = errors.New("no space left on device")

func (b *batchLog) BeginBatch() { b.batch, b.events, b.reported = b.batch+1, 0, len(b.d.reported) }

func (b *batchLog) Log(*sched.View, *sched.Event) { b.events++ }

func (b *batchLog) EndBatch() error {
	if len(b.d.reported) != b.reported {
		b.err = fmt.Errorf("batch %d: the driver heard of %v before the log was durable", b.batch,
			b.d.reported[b.reported:])
	}
	if b.batch == b.failAt {
		return errDisk
	}
	return nil
}

func fifo() sched.Decider {
	return pipeline.New(pipeline.Stages{Order: order.FIFO{}, Place: place.Count{}})
}

func joined(gpus int) sched.Event {
	return sched.Event{Kind: sched.NodeJoined, NodeSpec: &sched.NodeSpec{Name: "a", GPUs: gpus, Pool: sched.None}}
}

func arrived(at sched.Time) sched.Event {
	return sched.Event{Time: at, Kind: sched.JobArrived, Spec: &sched.JobSpec{Submit: at, GPUs: sched.Rigid(1)}}
}

func started(at sched.Time, job sched.JobID) sched.Event {
	return sched.Event{Time: at, Kind: sched.AttemptStarted, Job: job, Attempt: 1, WorkFrom: at, Rate: 1}
}

func finished(at sched.Time, job sched.JobID) sched.Event {
	return sched.Event{Time: at, Kind: sched.AttemptEnded, Job: job, Attempt: 1, Outcome: sched.Finished}
}

// Ensure that no order is given before its batch is durable, and none of a batch that cannot be made so.
func TestNoOrderBeforeItIsDurable(t *testing.T) {
	script := func() *answers {
		return &answers{list: [][]sched.Event{{joined(1)}, {arrived(1)}, {started(2, 0)}, {arrived(3)},
			{finished(4, 0)}, {started(5, 1)}, {finished(6, 1)}}}
	}
	for failAt := range 8 {
		d := script()
		log := &batchLog{d: d, failAt: failAt}
		err := engine.Run(context.Background(), engine.NewState(eventlog.Header{}), d, fifo(),
			engine.Options{Sinks: []eventlog.Sink{log}})
		if errors.Is(err, errDisk) != (failAt > 0) || log.err != nil {
			t.Errorf("fails at %d: %v, %v", failAt, err, log.err)
		}
		want := []string{"start job 0 attempt 1", "start job 1 attempt 1"}
		switch {
		case failAt > 0 && failAt <= 2:
			want = nil
		case failAt > 0 && failAt <= 5:
			want = want[:1]
		}
		if !slices.Equal(d.reported, want) {
			t.Errorf("fails at %d: said %v, want %v", failAt, d.reported, want)
		}
	}
}

// Ensure that what Sync reports of several instants is folded in order of time, in one batch with one decision, and
// that the log of it replays.
func TestSyncOfSeveralInstants(t *testing.T) {
	first := &answers{list: [][]sched.Event{{joined(2)}, {arrived(1)}, {arrived(2)}, {arrived(3)}}}
	var log bytes.Buffer
	w := eventlog.NewWriter(&log, eventlog.Header{ShareLimit: 1})
	if err := engine.Run(context.Background(), engine.NewState(eventlog.Header{}), first, fifo(),
		engine.Options{Sinks: []eventlog.Sink{w}}); err != nil {
		t.Fatal(err)
	}
	must(w.Flush())
	p := readTape(t, log.Bytes())
	dec := fifo()
	s, batch, err := engine.Recover(context.Background(), p.header, p.until(len(p.batches)), dec,
		engine.ReplayOptions{})
	if err != nil || batch != 4 {
		t.Fatalf("batch %d, %v", batch, err)
	}
	// Reported out of order: job 1 came up at 6 and ended at 9, job 0 came up at 5 and goes on.
	second := &answers{list: [][]sched.Event{{finished(9, 1), started(6, 1), started(5, 0)}, {started(11, 2)}}}
	var kinds []string
	note := sinkFunc(func(_ *sched.View, e *sched.Event) {
		kinds = append(kinds, fmt.Sprintf("%d %v %d", e.Time, e.Kind, e.Job))
		log.Write(append(eventlog.AppendEvent(nil, batch+1, e), 10))
	})
	count := &batchLog{d: second}
	o := engine.Options{Sinks: []eventlog.Sink{count, sinkFunc(func(v *sched.View, e *sched.Event) {
		if count.batch == 1 {
			note(v, e)
		}
	})}}
	if err = engine.Run(context.Background(), s, second, dec, o); err != nil {
		t.Fatal(err)
	}
	want := "5 started 0, 6 started 1, 9 ended 1, 9 decided 2, 9 ordered 2"
	if got := strings.Join(kinds, ", "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if want := []string{"start job 2 attempt 1"}; !slices.Equal(second.reported, want) {
		t.Errorf("said %v, want %v: what is answered is not given again", second.reported, want)
	}
	r, err := eventlog.NewReader(&log, "log")
	must(err)
	if err := replay(r, fifo(), engine.ReplayOptions{}); err != nil {
		t.Errorf("the log of both runs does not replay: %v", err)
	}
}

// Ensure that Fold notifies its sinks of batches as a run does.
func TestFoldTellsBatches(t *testing.T) {
	var log bytes.Buffer
	w := eventlog.NewWriter(&log, eventlog.Header{ShareLimit: 1})
	d := &answers{list: [][]sched.Event{{joined(1)}, {}, {arrived(1)}, {started(2, 0)}, {finished(4, 0)}}}
	must(engine.Run(context.Background(), engine.NewState(eventlog.Header{}), d, fifo(),
		engine.Options{Sinks: []eventlog.Sink{w}}))
	must(w.Flush())
	p := readTape(t, log.Bytes())
	count := &batchLog{d: &answers{}}
	if _, batch, err := engine.Fold(p.header, p.until(len(p.batches)), count); err != nil || batch != 5 ||
		count.batch != 4 || count.events == 0 {
		t.Errorf("batch %d, %d said, %v; want the 4 with events of 5", batch, count.batch, err)
	}
	if _, _, err := engine.Fold(p.header, p.until(len(p.batches)), &batchLog{d: &answers{}, failAt: 2}); !errors.Is(err,
		errDisk) {
		t.Errorf("got %v, want the error of the sink", err)
	}
}
