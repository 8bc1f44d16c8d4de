package driver

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/jobs"
	"github.com/trainyard/trainyard/kube/driver/observer"
	"github.com/trainyard/trainyard/kube/driver/writer"
	"github.com/trainyard/trainyard/sched"
)

// Reasons why a job is held.
const (
	refuses = "the API server refuses its pods: "
	unclear = "until it has run once it is given free GPUs alone, since the API server does not say whether it takes " +
		"its pods: "
	stalled = "the API server did not say at a start whether it takes such pods; once it is asked again, the job is " +
		"given free GPUs alone until it has run once: "
)

// try asks the API server about the objects of a job.
func (d *Driver) try(ctx context.Context, tj *v1alpha1.TrainingJob, gpus int) error {
	if tj.Spec.Cut != nil {
		whole, err := jobs.Find(ctx, d.api, client.ObjectKeyFromObject(tj), tj.UID)
		if err != nil {
			return err
		}
		tj = whole
	}
	return d.objects.Try(ctx, d.o.Mode, tj, gpus)
}

// widest returns how many GPUs the widest pod of a job has: as many as it wants, or as a node has.
func (d *Driver) widest(tj *v1alpha1.TrainingJob) int {
	want, most := int(tj.Spec.GPUs.Min), 0
	if w := tj.Spec.GPUs.Want; w != nil {
		want = int(*w)
	}
	for i := range d.view.Nodes {
		if n := &d.view.Nodes[i]; n.Joined() {
			most = max(most, n.Spec.GPUs)
		}
	}
	if most == 0 {
		most = writer.MostPerClaim
	}
	return min(want, most)
}

// admit says whether a job that waits may be given GPUs.
func (d *Driver) admit(tj *v1alpha1.TrainingJob) jobs.Admission {
	id, j := d.jobOf(tj)
	if j != nil && j.Paused && j.Attempts > 0 && j.FirstStart < 0 { // it is held, as those who led before found out
		d.gate.Distrust(tj.UID)
	}
	delete(d.unsure, id)
	switch v := d.gate.Ask(tj, d.widest(tj)); v.Answer {
	case writer.Unasked:
		return jobs.Admission{Unknown: true}
	case writer.Held:
		return jobs.Admission{Hold: refuses + v.Why}
	case writer.Stalled:
		return jobs.Admission{Hold: stalled + v.Why}
	case writer.Hopeless:
		return jobs.Admission{Never: v.Why}
	case writer.Unsure:
		if j == nil || j.FirstStart < 0 {
			return d.leftover(tj, id, j, unclear+v.Why)
		}
	}
	return jobs.Admission{}
}

// jobOf returns the number of a job, and what the View has of it: None and nil if it has not arrived.
func (d *Driver) jobOf(tj *v1alpha1.TrainingJob) (sched.JobID, *sched.Job) {
	id, known := d.jobs.ID(client.ObjectKeyFromObject(tj))
	if !known || d.view.Jobs[id].Spec.Task != string(tj.UID) {
		return sched.None, nil
	}
	return id, &d.view.Jobs[id]
}

// leftover lets a job have GPUs that are free, so that none is taken from others for it: while there is room for it,
// and for one such job at a time, since two would compete.
func (d *Driver) leftover(tj *v1alpha1.TrainingJob, id sched.JobID, j *sched.Job, why string) jobs.Admission {
	hold := jobs.Admission{Hold: why}
	if j != nil {
		d.unsure[id] = true
		if len(j.Target) > 0 {
			return jobs.Admission{}
		}
	}
	spec, err := jobs.Spec(tj, d.o.Origin, d.o.Types)
	another := d.given != "" && d.given != tj.UID // a job that arrives is asked about twice
	if err != nil || another || d.isLoose(id) || !hasRoom(d.view, spec) {
		return hold
	}
	d.given = tj.UID
	return jobs.Admission{}
}

// isLoose reports whether a job other than id that may have free GPUs alone waits for them.
func (d *Driver) isLoose(id sched.JobID) bool {
	for other := range d.unsure {
		if j := &d.view.Jobs[other]; other != id && !j.Paused && !isSettled(j) {
			return true
		}
	}
	return false
}

// isSettled reports whether a job has GPUs, is to have some, or is done.
func isSettled(j *sched.Job) bool {
	return j.State == sched.Done || j.HoldsDevices() || len(j.Target) > 0
}

// leftovers returns what is to be looked at because there is room now for a job that may have free GPUs alone, or not
// any more for one that waits for them.
func (d *Driver) leftovers() (keys []observer.Key) {
	var first sched.JobID = sched.None
	for id := range d.unsure {
		j := &d.view.Jobs[id]
		switch room := hasRoom(d.view, j.Spec); {
		case isSettled(j):
			delete(d.unsure, id)
		case !j.Paused && !room:
			keys = append(keys, keyOf(j))
		case j.Paused && room && (first < 0 || id < first):
			first = id
		}
	}
	if first >= 0 && d.given == "" && !d.isLoose(first) {
		keys = append(keys, keyOf(&d.view.Jobs[first]))
	}
	return keys
}

func keyOf(j *sched.Job) observer.Key {
	return observer.KeyOfJob(types.NamespacedName{Namespace: j.Spec.User, Name: j.Spec.Name})
}

// hasRoom reports whether so many GPUs as a job needs are free: on one node, or if it is wider than any on nodes that
// are free as a whole.
func hasRoom(v *sched.View, s *sched.JobSpec) bool {
	most, whole := 0, 0
	for i := range v.Nodes {
		n := &v.Nodes[i]
		if !n.Open() || !s.Types.Has(n.Spec.Type) {
			continue
		}
		free := 0
		for g := range n.Spec.GPUs {
			x := &v.GPUs[n.First+sched.GPUID(g)]
			if x.Usable() && x.Holders == 0 && x.Targets == 0 {
				free++
			}
		}
		if most = max(most, free); free == n.Spec.GPUs {
			whole += free
		}
	}
	return max(most, whole) >= int(s.GPUs.Min)
}

// waits has the gate forget a job that does not wait.
func (d *Driver) waits(key types.NamespacedName, id sched.JobID, tj *v1alpha1.TrainingJob) {
	if d.gate == nil {
		return
	}
	j := &d.view.Jobs[id]
	switch {
	case j.State == sched.Done:
		d.gate.Forget(key, types.UID(j.Spec.Task))
	case j.HoldsDevices() && !j.Paused:
		d.gate.Leave(key)
	}
	if tj != nil && tj.Spec.Suspend || isSettled(j) {
		delete(d.unsure, id)
	}
}

// leaveGate has the gate forget a job that does not arrive.
func (d *Driver) leaveGate(tj *v1alpha1.TrainingJob) {
	if d.gate != nil {
		d.gate.Forget(client.ObjectKeyFromObject(tj), tj.UID)
	}
}

// refused notes that the API server refused the start of a job, which is held because of that.
func (d *Driver) refused(ctx context.Context, id sched.JobID, v writer.Verdict) {
	s := d.view.Jobs[id].Spec
	why := refuses
	if v.Answer == writer.Unsure {
		why = stalled
	}
	d.o.Held(id, why+v.Why)
	tj := new(v1alpha1.TrainingJob)
	key := types.NamespacedName{Namespace: s.User, Name: s.Name}
	if found, err := d.api.Get(ctx, key, tj); err == nil && found && string(tj.UID) == s.Task {
		d.gate.Refused(tj, d.widest(tj), v)
	}
}
