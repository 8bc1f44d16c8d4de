package server

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/explain/text"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/metrics/timeline"
	"github.com/trainyard/trainyard/report"
	"github.com/trainyard/trainyard/sched"
)

// Operations that take a Historian.
const (
	historyID  = "history"
	lossesID   = "losses"
	attemptsID = "attempts"
	usersID    = "users"
	usageID    = "usage"
	seriesID   = "series"
	forecastID = "forecast" // takes a Foreseer
)

var ofHistory = map[string]bool{historyID: true, lossesID: true, attemptsID: true, usersID: true, usageID: true,
	seriesID: true}

// past answers about what happened. What it packs is packed once for all who ask, until something happens
// or it is old: series end when it was packed.
type past struct {
	s      *Server
	turn   chan struct{} // one packs at a time
	seq    uint64        // of the last event of packed
	packed []byte
	old    time.Time // when packed is old
}

const (
	// packLasts is how long what is packed holds where nothing happens, at least.
	packLasts = 5 * time.Second
	// packRest is how many times as long as it took to pack it holds then: that takes a twentieth of the time.
	packRest = 19
)

func newPast(s *Server) *past { return &past{s: s, turn: make(chan struct{}, 1)} }

// history writes what happened so far: the number of the last event, and when time started and is, before what is
// packed.
func (p *past) history(w http.ResponseWriter, r *http.Request, _ *nothing) error {
	done, err := inTurn(r.Context(), p.turn)
	if err != nil {
		return err
	}
	if seq := p.s.o.Host.LastEvent(); p.packed == nil || seq != p.seq || time.Now().After(p.old) {
		if err = p.pack(r.Context(), seq); err != nil {
			done()
			return err
		}
	}
	seq, packed := p.seq, p.packed
	done()
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"schema":"trainyard.history/v1","seq":%d,"origin":%q,"now_s":%.3f,`, seq,
		p.s.origin.UTC().Format(time.RFC3339Nano), time.Since(p.s.origin).Seconds())
	_, _ = w.Write(packed[1:]) // without its brace
	return nil
}

// pack packs what happened up to an event at least.
func (p *past) pack(ctx context.Context, seq uint64) error {
	h, start := p.s.o.Host.Header(), time.Now()
	sys := report.System{Name: h.System, Settings: h.Settings, Engine: "trainyard"}
	err := p.s.o.Host.Look(ctx, func(*sched.View) {
		var jobs []metrics.Job
		sys.Result, jobs = p.s.o.Host.Result()
		sys.Jobs = slices.Clone(jobs)
		sys.Timeline = p.s.o.Host.(Historian).Timeline().Snapshot(p.now())
	})
	if err != nil {
		return err
	}
	if len(sys.Timeline.Types) == 0 {
		sys.Timeline.Types = h.Types
	}
	doc := report.Report{Version: p.s.o.Version, Unit: p.s.o.Site.Unit(),
		Systems: []report.System{sys}, Facts: []report.Fact{{Name: "cluster", Text: h.Cluster}}}
	packed, err := doc.Pack()
	if err != nil {
		return err
	}
	p.packed, p.seq, p.old = packed, seq, time.Now().Add(max(packLasts, packRest*time.Since(start)))
	return nil
}

// now is the time of the host.
func (p *past) now() sched.Time { return sched.Time(time.Since(p.s.origin)) }

// when says a time as RFC 3339; "" = it did not come to that.
func (p *past) when(t sched.Time) string {
	if t == sched.None {
		return ""
	}
	return p.s.origin.Add(time.Duration(t)).UTC().Format("2006-01-02T15:04:05.000Z")
}

// losses returns where every GPU-hour went.
func (p *past) losses(ctx context.Context, in *rangeInput) (api.Losses, error) {
	from, to, err := p.span(in)
	if err != nil {
		return api.Losses{}, err
	}
	line, _, err := p.copied(ctx)
	if err != nil {
		return api.Losses{}, err
	}
	l := line.LossesIn(from, to)
	doc := api.Losses{Schema: "trainyard.losses/v1", From: p.when(l.From), To: p.when(l.To), Hours: l.All.Hours(),
		By: map[string]float64{}, Users: make([]api.UserHours, len(l.Users))}
	for c := range timeline.Classes {
		doc.By[c.String()] = l.By[c].Hours()
	}
	for i := range l.Users {
		u := &l.Users[i]
		doc.Users[i] = api.UserHours{User: u.User, Useful: u.By[timeline.Useful].Hours(),
			Redone: u.By[timeline.Redone].Hours(), ComingUp: u.By[timeline.ComingUp].Hours(),
			Stopping: u.By[timeline.Stopping].Hours()}
	}
	return doc, nil
}

// attempts returns those of a job.
func (p *past) attempts(ctx context.Context, _ *aboutJob) (api.Attempts, error) {
	id := callerOf(ctx).job
	doc := api.Attempts{Schema: "trainyard.attempts/v1", Job: int(id), Attempts: []api.Attempt{}}
	err := p.s.o.Host.Look(ctx, func(v *sched.View) {
		list := p.s.o.Host.(Historian).Timeline().OfJob(id)
		for i := range list {
			doc.Attempts = append(doc.Attempts, p.attempt(v, &list[i]))
		}
	})
	return doc, err
}

// marks are the words of what is odd about an attempt.
var marks = []struct {
	of   timeline.Marks
	word string
}{{timeline.Resized, "resized"}, {timeline.Migrated, "moved"}, {timeline.Shared, "shared"},
	{timeline.NoStart, "no-start"}}

func (p *past) attempt(v *sched.View, a *timeline.Attempt) api.Attempt {
	doc := api.Attempt{Number: int(a.Number), Ordered: p.when(a.Ordered), Up: p.when(a.Up), Work: p.when(a.Work),
		Stopped: p.when(a.Stopped), Ended: p.when(a.Ended), GPUs: []string{}, Batch: int(a.Batch), Given: a.Given,
		Outcome: a.Outcome.String(), Reason: a.Reason.Code.String(), Marks: []string{}, Lost: a.Lost().Seconds()}
	if id, named := a.Other(); named {
		by := int(id)
		doc.By = &by
	}
	for _, run := range a.GPUs {
		for g := run.First; g < run.First+sched.GPUID(run.Count); g++ {
			doc.GPUs = append(doc.GPUs, text.GPUName(v, g))
		}
	}
	for _, m := range marks {
		if a.Marks&m.of != 0 {
			doc.Marks = append(doc.Marks, m.word)
		}
	}
	return doc
}
