package simulate

import (
	"cmp"
	"errors"
	"fmt"
	"github.com/trainyard/trainyard/internal/suggest"
	"github.com/trainyard/trainyard/system/key"
	"math"
	"slices"
	"time"

	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/model/variability"
	replica "github.com/trainyard/trainyard/replica/pal"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/system/pal"
	"github.com/trainyard/trainyard/trace"
)

// palPreset: every system goes through the replica, for its rounds, free moves and endless trace fit no clean stage.
var palPreset = map[string]preset{
	"pal":           {defaults: bloxDefaults, alone: publishedPlacement(replica.PAL)},
	"pm-first":      {defaults: bloxDefaults, alone: publishedPlacement(replica.PMFirst)},
	"packed":        {defaults: bloxDefaults, alone: publishedPlacement(replica.PackedNonSticky)},
	"packed-sticky": {defaults: bloxDefaults, alone: publishedPlacement(replica.PackedSticky)},
}

var bloxDefaults = map[string]string{"restart_overhead": "0", "spread_penalty": "0", "locality_penalty": "1.7"}

// palPresetKeys are taken by the systems under the preset, and nowhere else.
var palPresetKeys = key.List{keyWrap.Key, keyTracked.Key}

var (
	keyWrap = key.Switch("on", "off", "wrap", "on",
		"blox-pal: after its last job the trace is issued again, for ever: on or off")
	keyTracked = key.Int("tracked", "0", "blox-pal: the run ends when so many jobs, the first ones, are done; 0 = "+
		"all of the trace")
)

// maxWrapped bounds a run that may never end: under las and srtf a trace that repeats itself can starve its own first
// jobs. It is 5000 hours.
const maxWrapped = 60_000

// publishedPlacement runs the replica of the released simulator.
func publishedPlacement(policy replica.Policy) func(*Request, *key.Settings) (replicaRun, error) {
	return func(s *Request, set *key.Settings) (replicaRun, error) {
		p, err := bloxParams(s, set)
		if err == nil {
			err = set.Err()
		}
		var jobs []replica.Job
		if err == nil {
			jobs, err = bloxJobs(s.Trace)
		}
		if p.Policy = policy; err == nil {
			err = p.Validate(jobs)
		}
		if err != nil {
			return nil, fmt.Errorf("preset: blox-pal: %w", err)
		}
		return func(stop func() bool) (*Outcome, error) {
			p.Stop = stop
			return bloxOutcome(s, jobs, replica.Run(jobs, p)), nil
		}, nil
	}
}

func bloxParams(s *Request, set *key.Settings) (replica.Params, error) {
	p := replica.Params{Round: int64(cmp.Or(s.Round, pal.FirstRound) / time.Second),
		Locality: system.LocalityPenalty.Get(set),
		Wrap:     keyWrap.Get(set), Tracked: keyTracked.Get(set)}
	switch word := system.Order.Get(set); word {
	case "las":
		p.Order = replica.LAS
	case "srtf":
		p.Order = replica.SRTF
	case "fifo":
	default:
		set.Refuse("order", "fifo, las, srtf"+suggest.Hint(word, []string{"fifo", "las", "srtf"}))
	}
	if p.Wrap && p.Order != replica.FIFO {
		p.MaxRounds = maxWrapped
	}
	if err := bloxHonours(s, set); err != nil {
		return p, err
	}
	p.GPUsPerNode = s.Cluster.Nodes[0].GPUs
	return p, bloxScores(s, &p)
}

// bloxHonours refuses what the replica knows nothing of.
func bloxHonours(s *Request, set *key.Settings) error {
	if err := plainWorld(s); err != nil {
		return err
	}
	if s.Scores == nil {
		return errors.New("no PM scores of the GPUs were given; see --variability")
	}
	err := wantZero(set, "the released simulator", system.RestartOverhead.Key, system.StartDelay.Key,
		system.StopDelay.Key, system.SpreadPenalty.Key,
		system.MoveCost.Key, system.Tolerance.Key, system.MinRun.Key, system.UserLimit.Key, system.ReplaceEvery.Key)
	if err != nil {
		return err
	}
	for _, k := range []*key.Key{&system.Classes.Key, &system.Locality.Key, &system.Backfill.Key,
		&system.Stragglers.Key} {
		if text := cmp.Or(set.Text(k), k.Default); text != k.Default {
			return fmt.Errorf("%s=%s, want none: the released simulator knows nothing of it", k.Name, text)
		}
	}
	return nil
}

// plainWorld refuses what no released simulator that works in rounds knows: nodes that differ or fail, events from
// outside, rounds that are no whole seconds.
func plainWorld(s *Request) error {
	for i := range s.Cluster.Nodes {
		n := &s.Cluster.Nodes[i]
		if n.GPUs != s.Cluster.Nodes[0].GPUs || n.Type != s.Cluster.Nodes[0].Type {
			return fmt.Errorf("node %s has %d GPUs of type %d, want all nodes alike: the released simulator knows "+
				"no others", n.Name, n.GPUs, n.Type)
		}
	}
	switch {
	case len(s.Cluster.Nodes) == 0:
		return errors.New("no nodes, want some")
	case s.Cluster.Failures.MTBF > 0:
		return fmt.Errorf("nodes that fail every %v, want nodes that never do: the released simulator knows nothing "+
			"of failures", s.Cluster.Failures.MTBF)
	case len(s.Inject) > 0:
		return errors.New("the released simulator takes no events from outside")
	case s.Round%time.Second != 0:
		return fmt.Errorf("round %v, want whole seconds", s.Round)
	}
	return nil
}

// bloxScores takes raw scores from what is true, and binned ones, with the published number of bins, from what is
// known.
func bloxScores(s *Request, p *replica.Params) error {
	known, err := s.scores()
	if err != nil {
		return err
	}
	for c, label := range variability.Labels {
		at, err := s.Scores.Class(label)
		if err != nil {
			return err
		}
		p.PM[c] = s.Scores.PM[at]
		if at, err = known.Class(label); err != nil {
			return err
		}
		bins := variability.Rule{K: variability.PublishedK}.Bins(known.PM[at])
		for g := range p.PM[c] {
			p.SF[c] = append(p.SF[c], bins.Of(g))
		}
	}
	return nil
}

// bloxJobs turns durations back into iterations.
func bloxJobs(t *trace.Trace) ([]replica.Job, error) {
	jobs := make([]replica.Job, len(t.Jobs))
	for i := range t.Jobs {
		j := &t.Jobs[i]
		submit := time.Duration(j.Spec.Submit)
		m := slices.IndexFunc(replica.Models, func(m replica.Model) bool { return m.Name == j.Spec.Model })
		switch {
		case submit%time.Second != 0:
			return nil, fmt.Errorf("job %s: submit %v, want whole seconds", j.Spec.Name, submit)
		case m < 0:
			return nil, fmt.Errorf("job %s: model %q, want one whose iteration time is published", j.Spec.Name,
				j.Spec.Model)
		}
		jobs[i] = replica.Job{ID: j.Spec.Name, Submit: int64(submit / time.Second), GPUs: int(j.Spec.GPUs.Want),
			Iterations: iterations(j.Duration, replica.Models[m].Second), Model: j.Spec.Model}
	}
	return jobs, nil
}

// iterations is how many iterations of sec seconds d is: the whole number that was rounded to d, if there is one.
func iterations(d time.Duration, sec float64) float64 {
	n := d.Seconds() / sec
	if whole := math.Round(n); sched.Seconds(whole*sec) == d {
		return whole
	}
	return n
}

// bloxOutcome sums up what the replica says of the tracked jobs.
func bloxOutcome(s *Request, jobs []replica.Job, res replica.Result) *Outcome {
	recs := make([]metrics.Job, len(res.Jobs))
	at := func(sec int64) sched.Time { return sched.Time(sec) * sched.Time(time.Second) }
	end := sched.Time(0)
	for i, o := range res.Jobs {
		rec := metrics.Job{Name: o.ID, GPUs: int32(jobs[i].GPUs), Submit: at(jobs[i].Submit), Start: sched.None,
			Finish: sched.None,
			Run:    time.Duration(o.Run) * time.Second, Preemptions: int32(o.Preemptions), Migrations: int32(o.Moves)}
		rec.Service = sched.GPUTime(jobs[i].GPUs, rec.Run)
		if o.Start >= 0 {
			rec.Start = at(o.Start)
		}
		if o.Finished {
			rec.Finish, rec.Outcome = at(o.Finish), sched.Finished
			end = max(end, rec.Finish)
		}
		recs[i] = rec
	}
	sum := &Outcome{Result: metrics.FromJobs(s.System, recs, end), PerJob: recs}
	sum.addUse(s.Cluster.GPUs())
	// Repeated jobs hold GPUs as well.
	sum.GPUAllocated, sum.GPUBusy = res.BusyShare, res.BusyShare
	return sum
}
