package controller

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	driverobserver "github.com/trainyard/trainyard/kube/driver/observer"
	"github.com/trainyard/trainyard/kube/record"
	"github.com/trainyard/trainyard/sched"
)

// wide returns a job of two GPUs.
func wide(name string) *v1alpha1.TrainingJob {
	j := typed(name)
	j.Spec.GPUs.Min = 2
	return j
}

// jobOf reads a job.
func jobOf(t *testing.T, api client.Client, name string) *v1alpha1.TrainingJob {
	t.Helper()
	j := typed(name)
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(j), j); err != nil {
		t.Fatal(err)
	}
	return j
}

// restate has another write the status of a job.
func restate(t *testing.T, api client.Client, name string, as func(*v1alpha1.TrainingJobStatus)) {
	t.Helper()
	j := jobOf(t, api, name)
	as(&j.Status)
	if err := api.Status().Update(t.Context(), j); err != nil {
		t.Fatal(err)
	}
}

func reasonOf(t *testing.T, api client.Client, name string) string {
	t.Helper()
	return jobOf(t, api, name).Status.Reason
}

// Ensure that what a job hears of why it waits does not stay false: others start, and a new leader finds what an old
// one said.
func TestReasonsGoWithTheCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apiWith("fifo", v1alpha1.Count, nodeOf("a"), wide("x"), wide("y"), wide("z"))
		q := driverobserver.NewQueue()
		wants := func(want string) {
			t.Helper()
			if is := reasonOf(t, api, "z"); is != want {
				t.Errorf("after %v: %q, want %q", time.Now(), is, want)
			}
		}
		time.AfterFunc(time.Minute, func() {
			wants("behind lab/y, which no one may pass")
			b := nodeOf("b")
			if err := api.Create(t.Context(), b); err != nil {
				t.Error(err)
			}
			q.Push(driverobserver.KeysOf(b)...)
		})
		begunBy(t, api, q, 80*time.Second, nil)
		wants("needs 2 GPUs, 0 are free")
		restate(t, api, "z", func(was *v1alpha1.TrainingJobStatus) {
			was.Reason = "needs 2 GPUs, 0 are free; 4 jobs rank before it"
		})
		begunBy(t, api, q, 20*time.Second, nil)
		wants("needs 2 GPUs, 0 are free")
	})
}

// Ensure that a new leader, too, reports to a job what went wrong with its starts under an old one.
func TestTroubleOutlivesItsLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apiWith("fifo", v1alpha1.Count, nodeOf("a"), wide("x"), wide("y"))
		begun(t, api, 20*time.Second, nil)
		rec, err := record.Read(jobOf(t, api, "y").Status.Record)
		if err != nil {
			t.Fatal(err)
		}
		rec.Job.StartFailures = 2
		const want = "needs 2 GPUs, 0 are free; its start failed, 2 in a row: pod y-2-0 waits (ErrImagePull: no " +
			"such image)"
		restate(t, api, "y", func(was *v1alpha1.TrainingJobStatus) { was.Record, was.Reason = rec.String(), want })
		for range 2 {
			begun(t, api, 30*time.Second, nil)
			if is := reasonOf(t, api, "y"); is != want {
				t.Errorf("%q, want %q", is, want)
			}
		}
	})
}

// crowd is a desk with so many jobs, all written, and a count of what is written of each.
func crowd(t *testing.T, n int) (d *desk, writes map[string]int) {
	writes = make(map[string]int)
	var mu sync.Mutex // several are written at a time
	d = newDesk(t, interceptor.Funcs{SubResourcePatch: func(_ context.Context, _ client.Client, _ string,
		o client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
		mu.Lock()
		defer mu.Unlock()
		writes[o.GetName()]++
		o.SetResourceVersion("1")
		return nil
	}})
	d.v.Jobs, d.dec = nil, none{}
	for i := range n {
		d.v.Jobs = append(d.v.Jobs,
			sched.Job{Spec: &sched.JobSpec{User: "lab", Name: fmt.Sprint(i), Task: "uid", GPUs: sched.Rigid(1)},
				State: sched.Waiting, Attempt: sched.Ended})
		d.jobs[sched.JobID(i)] = &saved{version: "1", wait: noWait}
		d.live = append(d.live, sched.JobID(i))
		d.touch(sched.JobID(i))
	}
	d.news.report = func(...note) {}
	d.pass(0)
	clear(writes)
	return d, writes
}

// attentive is a Decider that knows of no job of which it remembers something else but those that events name, and
// counts of how many it is asked.
type attentive struct {
	none
	sched.ByName

	asked int
}

// SaveJob saves nothing.
func (a *attentive) SaveJob(_ sched.JobID, b []byte) []byte {
	a.asked++
	return b
}

// Ensure that a batch of one changed job looks at this one, asks for what is remembered of it and writes it, however
// many others there are, those that wait, run and are done alike.
func TestBatchOfOneJob(t *testing.T) {
	const nodes, of = 60, 8
	for _, jobs := range []int{500, 5000} {
		d, writes := crowd(t, jobs)
		for n := range nodes {
			d.v.Nodes = append(d.v.Nodes, sched.Node{Spec: sched.NodeSpec{Name: fmt.Sprint("n", n), GPUs: of},
				State: sched.NodeUp, First: sched.GPUID(n * of)})
			for range of {
				d.v.GPUs = append(d.v.GPUs, sched.GPU{Node: sched.NodeID(n), Holders: 1})
			}
		}
		for i := range nodes * of {
			j := &d.v.Jobs[i]
			j.State, j.Attempt, j.Up, j.GPUs = sched.Active, sched.Running, true, []sched.GPUID{sched.GPUID(i)}
		}
		ask := &attentive{}
		d.dec, d.rounds.due, d.tally, d.cluster = ask, sched.Never, tally{}, false
		d.touch(0)
		d.pass(1) // which counts all
		clear(writes)
		ask.asked, d.tally.looks = 0, 0
		d.Log(d.v, &sched.Event{Kind: sched.Progressed, Job: 7, Node: sched.None, Pool: sched.None, Value: 3})
		if d.pass(2); ask.asked > 2 || d.tally.looks > 2 || len(writes) != 1 || writes["7"] != 1 {
			t.Errorf("of %d jobs %d are asked for, %d jobs and GPUs are looked at, and written are %v", jobs, ask.asked,
				d.tally.looks, writes)
		}
	}
}

// pass has one batch at an instant.
func (d *desk) pass(at sched.Time) {
	d.t.Helper()
	d.v.Now, d.batch = at, true
	if err := d.EndBatch(); err != nil {
		d.t.Fatal(err)
	}
}

// Ensure that when all that was reported is out of date at once no more than some jobs are written in a pass, each in
// its turn, and that who has nothing new to be reported is not written.
func TestRetoldInTurns(t *testing.T) {
	const jobs = 3*mostRetold + 10
	d, writes := crowd(t, jobs)
	for i := range d.live {
		d.jobs[sched.JobID(i)].shown.reason = "long ago"
	}
	for pass := 1; pass <= 20; pass++ {
		before := len(writes)
		d.pass(sched.Time(pass) * sched.Time(retellEvery))
		if n := len(writes) - before; n > mostRetold {
			t.Errorf("pass %d writes %d jobs", pass, n)
		}
	}
	for name, n := range writes {
		if n != 1 {
			t.Errorf("job %s is written %d times", name, n)
		}
	}
	if d.pass(sched.Time(time.Hour)); len(writes) != jobs {
		t.Errorf("%d of %d jobs are reported again", len(writes), jobs)
	}
}

// Ensure that those who wait for something of another kind are reported first, that between passes and while much is
// written anyway no one is, and that this does not go on for ever.
func TestRetoldInOrder(t *testing.T) {
	d, writes := crowd(t, 2*fullReasons)
	for i := range d.live {
		d.jobs[sched.JobID(i)].shown.reason = "long ago"
	}
	last := sched.JobID(len(d.live) - 1)
	d.jobs[last].shown.gist = gist{stuck: true}
	if d.pass(d.rounds.due - 1); len(writes) != 0 {
		t.Errorf("%d jobs are written before it is time", len(writes))
	}
	for d.rounds.writes = busyWrites + 1; len(writes) == 0; d.rounds.writes = busyWrites + 1 {
		if d.pass(d.rounds.due); d.v.Now > sched.Time(mostPutOff) && len(writes) == 0 {
			t.Fatalf("put off until %v", d.v.Now)
		}
	}
	if d.v.Now < sched.Time(mostPutOff) || writes[fmt.Sprint(last)] != 1 {
		t.Errorf("at %v the job that waits for another thing is written %d times", d.v.Now, writes[fmt.Sprint(last)])
	}
}

// Ensure that the service of a job that runs is reported every minute, of no more jobs than in a pass.
func TestServiceGoesOn(t *testing.T) {
	d, writes := crowd(t, 2)
	j := &d.v.Jobs[0]
	j.State, j.Attempt, j.Up, j.GPUs = sched.Active, sched.Running, true, []sched.GPUID{0, 1}
	d.v.Nodes, d.v.GPUs = []sched.Node{{Spec: sched.NodeSpec{Name: "n", GPUs: 2}, State: sched.NodeUp}},
		make([]sched.GPU, 2)
	for at := sched.Time(0); at <= sched.Time(10*time.Minute); at = at.Add(retellEvery) {
		d.pass(at)
	}
	if n := writes["0"]; n < 10 || n > 11 || writes["1"] > 1 { // at first it is reported that it runs
		t.Errorf("within ten minutes the service is reported %d times, and the reason of who waits %d times", n,
			writes["1"])
	}
	d.touch(0)
	d.prepare()
	if is := d.jobs[0].next.Attained; is != "20m0s" {
		t.Errorf("after ten minutes on two GPUs its service is %s", is)
	}
}
