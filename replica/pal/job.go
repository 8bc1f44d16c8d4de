package pal

import "slices"

// job is a Job and its progress, which stands as it was at boundary since if the job runs.
type job struct {
	Job
	model  *Model
	place  int     // in the order of arrival
	key    float64 // in the order of the queue, smaller first
	length float64 // seconds at nominal speed

	running bool
	chosen  int64    // the last boundary at which it was given GPUs
	held    []uint64 // GPUs per node it has, or had when it ran last
	since   int64
	done    float64 // iterations
	ran     int64   // rounds
	speed   float64 // iterations per round, while it runs
	end     int64   // the boundary at which it finishes, if it keeps its GPUs
	Outcome
}

func newJob(j Job, place int) *job {
	m := modelOf(j.Model)
	return &job{Job: j, model: m, place: place, length: m.Second * j.Iterations, chosen: -1,
		Outcome: Outcome{ID: j.ID, Start: -1, Finish: -1}}
}

// settle brings the progress of a running job up to boundary now.
func (j *job) settle(now int64) {
	j.done, _ = addUp(j.done, j.speed, j.Iterations, now-j.since)
	j.ran += now - j.since
	j.since = now
}

// assign lets j run on gpus from now on, whether or not it ran before.
func (r *run) assign(j *job, gpus []uint64) {
	j.chosen = r.now
	same := slices.Equal(j.held, gpus)
	if j.running {
		if same {
			return
		}
		j.settle(r.now)
	}
	switch {
	case j.Start < 0:
		j.Start = r.now * r.Round
		j.held = slices.Clone(gpus)
	case !same:
		j.Moves++
		copy(j.held, gpus)
	}
	if !j.running {
		if j.Start < r.now*r.Round && j.since == r.now { // evicted in this very pass
			j.Preemptions--
		}
		r.running = append(r.running, j)
		j.running, j.since = true, r.now
	}
	j.speed = float64(r.Round) / r.iterationTime(j)
	_, rounds := addUp(j.done, j.speed, j.Iterations, maxRounds)
	j.end = r.now + rounds
}

// suspend takes the GPUs of j away. It leaves them held, and j in r.running.
func (r *run) suspend(j *job) {
	j.settle(r.now)
	j.running = false
	j.Preemptions++
}

// iterationTime is in seconds, on the GPUs that j holds: the slowest one counts.
func (r *run) iterationTime(j *job) float64 {
	slowest, nodes := 0.0, 0
	scores := r.PM[j.model.Class]
	for node, set := range j.held {
		if set != 0 {
			nodes++
		}
		for first := node * r.per; set != 0; set &= set - 1 {
			slowest = max(slowest, scores[first+trailing(set)])
		}
	}
	if nodes > 1 {
		return j.model.Second * slowest * r.Locality
	}
	return j.model.Second * slowest
}
