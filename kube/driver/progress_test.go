package driver

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/internal/objects"
	"github.com/trainyard/trainyard/kube/driver/writer"
	"github.com/trainyard/trainyard/sched"
)

// wire is a Follower that tests write to. A new follower gets all that was written, as from a log.
type wire struct {
	mu     sync.Mutex
	lines  []string
	at     []time.Time
	text   func(time.Time, []byte) // of who follows now
	end    func()
	asked  string        // pod and container
	slow   time.Duration // what was written comes so far apart
	behind time.Duration // by which the clock of its node is
}

func (f *wire) Follow(ctx context.Context, pod types.NamespacedName, container string, text func(time.Time, []byte),
	end func()) {
	f.mu.Lock()
	f.asked, f.text, f.end = fmt.Sprint(pod, " ", container), text, end
	for i, line := range f.lines {
		if f.slow > 0 {
			f.mu.Unlock()
			time.Sleep(f.slow)
			f.mu.Lock()
		}
		text(f.at[i], []byte(line))
	}
	f.mu.Unlock()
	<-ctx.Done()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.text, f.end = nil, nil
}

func (f *wire) write(line string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := time.Now().Add(-f.behind)
	f.lines, f.at = append(f.lines, line), append(f.at, at)
	if f.text != nil {
		f.text(at, []byte(line))
	}
}

func (f *wire) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.end != nil {
		f.end()
	}
}

// train writes a step every five seconds.
func (w *world) train(f *wire, from, to int) {
	w.Helper()
	for step := from; step <= to; step++ {
		f.write(fmt.Sprintf("TRAINYARD step=%d total=1000\n", step))
		w.passBy(time.Second, 5*time.Second)
	}
}

// Ensure that what is written is reported as progress, at most so often, with its measure kept; and that one who takes
// over goes on where it was, by the times at which things were written.
func TestFollow(t *testing.T) {
	play(t, []scene{
		{name: "steps, and who takes over", width: 2, opts: func(o *Options) { o.Follower = new(wire) },
			test: func(w *world) {
				w.run()
				f := w.d.o.Follower.(*wire)
				w.train(f, 1, 24)
				reported := w.of(sched.Progressed)
				last := reported[len(reported)-1]
				if n := len(reported); n < 8 || n > 12 || last.Value < 20 || last.Rate != 1 || last.Code != 1000 {
					w.Errorf("reported %d times in 2 minutes, last %+v", n, last)
				}
				if f.asked != "lab/train-1-0 main" {
					w.Errorf("%q is followed", f.asked)
				}
				w.d.Close()
				time.Sleep(30 * time.Second) // no driver leads
				for step := 25; step <= 30; step++ {
					f.write(fmt.Sprintf("TRAINYARD step=%d total=1000\n", step))
				}
				o := w.d.o
				w.take(o)
				w.train(f, 31, 40)
				next := w.last(sched.Progressed)
				if work := next.Work - last.Work; next.Value < 36 || next.Rate != 1 ||
					work != time.Duration(next.Value-last.Value)*5*time.Second {
					w.Errorf("after the change of leaders %+v; before %+v", next, last)
				}
				if n := strings.Count(w.paceOf("train"), `"per_second"`); n != 1 {
					w.Errorf("kept: %s", w.paceOf("train"))
				}
			}},
		{name: "who takes over reports nothing while hearing what was reported long ago", width: 2,
			opts: func(o *Options) { o.Follower = new(wire) }, test: func(w *world) {
				w.run()
				f := w.d.o.Follower.(*wire)
				w.train(f, 1, 24)
				before := w.last(sched.Progressed)
				w.d.Close()
				f.slow = 2 * time.Second
				w.take(w.d.o)
				w.passBy(time.Second, time.Minute)
				w.train(f, 25, 30)
				reported := w.of(sched.Progressed)
				for i := range reported[1:] {
					if reported[i+1].Work < reported[i].Work {
						w.Errorf("work falls from %v to %v", reported[i].Work, reported[i+1].Work)
					}
				}
				if last := reported[len(reported)-1]; last.Value < before.Value+4 {
					w.Errorf("step %v is reported last, %v before", last.Value, before.Value)
				}
			}},
		{name: "who takes over goes on reporting where the clocks of nodes are behind", width: 2,
			opts: func(o *Options) { o.Follower = new(wire) }, test: func(w *world) {
				w.run()
				f := w.d.o.Follower.(*wire)
				f.behind = time.Hour
				w.train(f, 1, 24)
				before := w.last(sched.Progressed)
				w.d.Close()
				w.take(w.d.o)
				w.train(f, 25, 40)
				if last := w.last(sched.Progressed); last.Value < before.Value+10 {
					w.Errorf("step %v is reported last, %v before", last.Value, before.Value)
				}
			}},
		{name: "what is kept and cannot be is measured again", width: 2,
			opts: func(o *Options) { o.Follower = new(wire) }, test: func(w *world) {
				change(w.cluster, objects.Job("train", 2, nil), func(tj *v1alpha1.TrainingJob) {
					tj.Annotations = map[string]string{writer.AnnotationPace: `{"reference": -1}`}
				})
				w.run()
				f := w.d.o.Follower.(*wire)
				w.train(f, 1, 12)
				if e := w.last(sched.Progressed); e.Rate != 1 || e.Work < 30*time.Second {
					w.Errorf("%+v", e)
				}
			}},
		{name: "nothing is heard by who is deaf", width: 2, opts: func(o *Options) { o.Deaf = true },
			test: func(w *world) {
				w.run()
				for step := range 4 {
					change(w.cluster, w.podOf("train-1-0"), func(p *corev1.Pod) {
						p.Annotations[v1alpha1.AnnotationProgress] = fmt.Sprint("TRAINYARD step=", step)
					})
					w.passBy(time.Second, 15*time.Second)
				}
				if n := len(w.of(sched.Progressed)); n > 0 {
					w.Errorf("reported %d times", n)
				}
			}},
	})
}

// lastWords is how long the end of an attempt waits for what its process wrote last.
const lastWords = 3 * time.Second

// Ensure that the end of an attempt that was stopped waits for its last words, but not for long, and not for those of
// one that never spoke.
func TestMayYetSay(t *testing.T) {
	var scenes []scene
	for _, c := range []struct {
		name   string
		spoke  bool
		says   string // "" = its log never ends
		within time.Duration
		want   sched.Outcome
	}{
		{"it says that it is done", true, "TRAINYARD done", lastWords, sched.Finished},
		{"it says something else", true, "bye\n", lastWords, sched.Preempted},
		{"its log never ends", true, "", lastWords + 2*time.Second, sched.Preempted},
		{"it never spoke", false, "", time.Second, sched.Preempted},
	} {
		f := new(wire)
		scenes = append(scenes,
			scene{name: c.name, width: 2, opts: func(o *Options) { o.Follower = f }, test: func(w *world) {
				w.run()
				if c.spoke {
					f.write("hello\n")
				}
				w.settle()
				w.stop(0)
				began := time.Now()
				if c.says != "" {
					w.pass(time.Second)
					w.attempt(0, sched.Stopping)
					f.write(c.says)
					f.close()
				}
				for len(w.of(sched.AttemptEnded)) == 0 && time.Since(began) < time.Minute {
					w.pass(100 * time.Millisecond)
				}
				if e := w.last(sched.AttemptEnded); e.Outcome != c.want || time.Since(began) > c.within {
					w.Errorf("ended %v after %v, want %v within %v", e.Outcome, time.Since(began), c.want, c.within)
				}
			}})
	}
	play(t, scenes)
}

// paceOf is what is kept of the speed of a job.
func (w *world) paceOf(name string) string {
	tj := objects.Job(name, 1, nil)
	must(w, w.Get(w.Context(), types.NamespacedName{Namespace: space, Name: name}, tj))
	return tj.Annotations[writer.AnnotationPace]
}
