package admission

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/observer"
	"github.com/trainyard/trainyard/kube/driver/writer"
)

// How often the API server is asked.
const (
	askers     = 4                // questions under way at once
	firstAgain = time.Minute      // until it is asked again what it refuses, doubled each time, ...
	firstSure  = 10 * time.Second // ... what it could not say, ...
	lastAgain  = 10 * time.Minute // ... and at most
	calm       = time.Second      // between rounds of questions because of a change in a namespace, at least ...
	share      = 10               // ... so many times what the last one took
)

// Options say what a Gate works with.
type Options struct {
	// Try asks the API server about the objects of a job, of which one rank has so many GPUs.
	Try  func(ctx context.Context, tj *v1alpha1.TrainingJob, gpus int) error
	Go   func(f func(ctx context.Context)) context.CancelFunc // runs something until the driver ends
	Look func(observer.Key)                                   // has an object looked at; any goroutine calls it
}

// Gate keeps the answers of the API server about jobs that wait. Any goroutine may use its methods.
type Gate struct {
	o Options

	mu     sync.Mutex
	shapes map[shape]*question
	jobs   map[types.NamespacedName]waiter
	wary   map[types.UID]int // jobs of which it refused real starts, and how many
	spaces map[string]*space
	ring   []string // namespaces that have questions, in turn
	busy   int      // questions under way
}

// shape is what an answer depends on.
type shape struct {
	space string
	hash  [sha256.Size]byte
}

// waiter is a job that waits, as it was hashed.
type waiter struct {
	uid        types.UID
	generation int64
	gpus       int
	shape      shape
}

// question is what is known of a shape.
type question struct {
	job     *v1alpha1.TrainingJob // one of its jobs
	gpus    int
	verdict writer.Verdict
	asked   time.Time // when it was answered last
	queued  bool
	tries   int                           // answers in a row that were not that it is taken
	jobs    map[types.NamespacedName]bool // that wait
	rest    time.Time                     // of one that is Stalled: until when it stays so
	timer   *time.Timer
}

// space is a namespace.
type space struct {
	queue   []shape
	changed bool      // a round because of a change is about to start
	round   time.Time // when the last one started; zero: it is over
	calm    time.Time // until when no other starts
}

// New returns a gate that has asked nothing.
func New(o Options) *Gate {
	return &Gate{
		o: o, shapes: make(map[shape]*question), jobs: make(map[types.NamespacedName]waiter),
		wary: make(map[types.UID]int), spaces: make(map[string]*space),
	}
}

// Ask returns what the API server said of the objects of a job, the widest rank of which has so many GPUs. If it has
// not said anything yet it is asked, and the job is looked at once it has. A job of which it refused a real start
// although it takes a part of it is Unsure.
func (g *Gate) Ask(tj *v1alpha1.TrainingJob, gpus int) writer.Verdict {
	key := client.ObjectKeyFromObject(tj)
	g.mu.Lock()
	defer g.mu.Unlock()
	q := g.shapes[g.shapeOf(key, tj, gpus)]
	q.jobs[key] = true
	stale := q.verdict.Answer == writer.Accepted && time.Since(q.asked) > lastAgain
	if (q.verdict.Answer == writer.Unasked || stale) && !q.queued {
		q.job, q.gpus = tj, gpus
		g.enqueue(g.jobs[key].shape)
	}
	if q.verdict.Answer == writer.Accepted && g.wary[tj.UID] > 0 {
		return writer.Verdict{Answer: writer.Unsure, Why: "an earlier start was refused, although a dry run is not"}
	}
	return q.verdict
}

// shapeOf returns the shape of a job, of which there is a question then.
func (g *Gate) shapeOf(key types.NamespacedName, tj *v1alpha1.TrainingJob, gpus int) shape {
	was, known := g.jobs[key]
	if known && was.uid == tj.UID && was.generation == tj.Generation && was.gpus == gpus {
		return was.shape
	}
	if known {
		g.leave(key, was)
	}
	w := waiter{uid: tj.UID, generation: tj.Generation, gpus: gpus, shape: shape{key.Namespace, hashOf(tj, gpus)}}
	g.jobs[key] = w
	if g.shapes[w.shape] == nil {
		g.shapes[w.shape] = &question{jobs: make(map[types.NamespacedName]bool)}
	}
	return w.shape
}

// hashOf returns a hash of what the API server is shown of a job.
func hashOf(tj *v1alpha1.TrainingJob, gpus int) (sum [sha256.Size]byte) {
	h := sha256.New()
	template := cmp.Or(tj.Spec.TemplateHash(), string(tj.UID)) // without one no two jobs share an answer
	_, _ = io.WriteString(h, template)
	_ = binary.Write(h, binary.LittleEndian, []int64{int64(gpus), tj.Spec.Checkpoint.GraceSeconds})
	fmt.Fprintf(h, "%q %q", tj.Spec.Checkpoint.Path, tj.Spec.Checkpoint.ResumeArg)
	h.Sum(sum[:0])
	return sum
}

// Leave notes that a job does not wait any more: it has GPUs, or is done.
func (g *Gate) Leave(key types.NamespacedName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if w, known := g.jobs[key]; known {
		g.leave(key, w)
	}
}

func (g *Gate) leave(key types.NamespacedName, w waiter) {
	delete(g.jobs, key)
	q := g.shapes[w.shape]
	delete(q.jobs, key)
	if len(q.jobs) > 0 || q.queued {
		return
	}
	if q.verdict.Answer == writer.Accepted && time.Since(q.asked) < lastAgain { // the next of its kind may use it
		time.AfterFunc(lastAgain, func() { g.drop(w.shape) })
		return
	}
	g.remove(w.shape)
}

// drop forgets a shape that no job has.
func (g *Gate) drop(s shape) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if q := g.shapes[s]; q != nil && len(q.jobs) == 0 && !q.queued {
		g.remove(s)
	}
}

func (g *Gate) remove(s shape) {
	if q := g.shapes[s]; q.timer != nil {
		q.timer.Stop()
	}
	delete(g.shapes, s)
}

// Forget drops all that is known of a job, which is done.
func (g *Gate) Forget(key types.NamespacedName, uid types.UID) {
	g.Leave(key)
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.wary, uid)
}

// Distrust notes that a start of a job was refused, though a dry run may not be: it takes nothing from others until it
// has run.
func (g *Gate) Distrust(uid types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.wary[uid] = max(g.wary[uid], 1)
}

// Refused notes that the API server refused a real start of a job. It is asked again later, and the later the more of
// its starts were refused. If it only did not say, no job of the shape is to start until it is asked again.
func (g *Gate) Refused(tj *v1alpha1.TrainingJob, gpus int, v writer.Verdict) {
	key := client.ObjectKeyFromObject(tj)
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.shapeOf(key, tj, gpus)
	q := g.shapes[s]
	q.jobs[key], q.job, q.gpus = true, tj, gpus
	q.tries = max(q.tries, g.wary[tj.UID])
	g.wary[tj.UID]++
	if v.Answer == writer.Unsure {
		v.Answer, q.rest = writer.Stalled, time.Now().Add(pause(v, q.tries))
	}
	g.answer(s, q, v)
}

// SpaceChanged has the API server asked again about the jobs of a namespace that wait, as a quota, a range of limits or
// a label of it is another.
func (g *Gate) SpaceChanged(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	sp := g.spaceOf(name)
	if sp.changed {
		return
	}
	sp.changed = true
	time.AfterFunc(max(time.Until(sp.calm), calm/10), func() { g.again(name) })
}

func (g *Gate) spaceOf(name string) *space {
	sp := g.spaces[name]
	if sp == nil {
		sp = new(space)
		g.spaces[name] = sp
	}
	return sp
}

// again asks about all jobs of a namespace that wait.
func (g *Gate) again(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	sp := g.spaceOf(name)
	sp.changed, sp.round = false, time.Now()
	for s, q := range g.shapes {
		switch {
		case s.space != name:
		case len(q.jobs) > 0:
			g.enqueue(s)
		case !q.queued:
			g.remove(s)
		}
	}
	g.rest(name, sp)
}

// rest notes that a round of a namespace is over, if it is. A namespace of which nothing is to be asked is forgotten
// but for its calm.
func (g *Gate) rest(name string, sp *space) {
	if len(sp.queue) > 0 {
		return
	}
	if !sp.round.IsZero() {
		sp.calm = time.Now().Add(max(calm, share*time.Since(sp.round)))
		sp.round = time.Time{}
	}
	if !sp.changed && !time.Now().Before(sp.calm) {
		delete(g.spaces, name)
	}
}

// enqueue has a question asked, after those of its namespace that wait, in turn with other namespaces.
func (g *Gate) enqueue(s shape) {
	q := g.shapes[s]
	if q.queued || q.job == nil {
		return
	}
	q.queued = true
	sp := g.spaceOf(s.space)
	if sp.queue = append(sp.queue, s); len(sp.queue) == 1 {
		g.ring = append(g.ring, s.space)
	}
	if g.busy < askers {
		g.busy++
		g.o.Go(g.work)
	}
}

// next returns the question whose turn it is; ok is false if there is none, and one asker less.
func (g *Gate) next() (s shape, tj *v1alpha1.TrainingJob, gpus int, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.ring) == 0 {
		g.busy--
		return s, nil, 0, false
	}
	name := g.ring[0]
	g.ring = g.ring[1:]
	sp := g.spaces[name]
	s, sp.queue = sp.queue[0], sp.queue[1:]
	if len(sp.queue) > 0 {
		g.ring = append(g.ring, name)
	}
	q := g.shapes[s]
	q.queued = false
	g.rest(name, sp)
	return s, q.job, q.gpus, true
}

// work asks until there is no question.
func (g *Gate) work(ctx context.Context) {
	for {
		s, tj, gpus, ok := g.next()
		if !ok {
			return
		}
		err := g.o.Try(ctx, tj, gpus)
		if ctx.Err() != nil {
			return
		}
		v, _ := writer.Judge(err)
		g.mu.Lock()
		if q := g.shapes[s]; q != nil {
			g.answer(s, q, v)
		}
		g.mu.Unlock()
	}
}

// answer notes what the API server said.
func (g *Gate) answer(s shape, q *question, v writer.Verdict) {
	was := q.verdict
	if was.Answer == writer.Stalled && v.Answer == writer.Unsure && time.Now().Before(q.rest) {
		return // it is asked again then
	}
	q.verdict, q.asked = v, time.Now()
	if q.timer != nil {
		q.timer.Stop()
		q.timer = nil
	}
	if v.Answer == writer.Accepted {
		q.tries = 0
	} else {
		q.timer = time.AfterFunc(pause(v, q.tries), func() { g.retry(s) })
		q.tries++
	}
	if was == v {
		return
	}
	for key := range q.jobs {
		g.o.Look(observer.KeyOfJob(key))
	}
}

// pause returns after what time the API server is asked again that gave an answer, after so many in a row that were not
// that it takes what it is asked about.
func pause(v writer.Verdict, tries int) time.Duration {
	first := firstAgain
	if v.Answer == writer.Unsure || v.Answer == writer.Stalled {
		first = firstSure
	}
	return min(first<<min(tries, 8), lastAgain)
}

// retry asks again, if a job waits for the answer.
func (g *Gate) retry(s shape) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if q := g.shapes[s]; q != nil && len(q.jobs) > 0 {
		g.enqueue(s)
	}
}
