package server

import (
	"context"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/explain/text"
	"github.com/trainyard/trainyard/sched"
)

// Times and sizes of boards.
const (
	boardEvery   = 250 * time.Millisecond // between two looks at what has changed
	devicesEvery = time.Second            // between two looks at devices where nothing happens
	boardDone    = 200                    // jobs that are done and shown still
)

// hub shows all viewers how things stand, as long as there are some. What has changed is looked for and encoded once.
// Each viewer has one delta at a time to take, into which what comes meanwhile is merged: no queue grows.
type hub struct {
	s *Server

	mu      sync.Mutex
	viewers map[*viewer]bool
	whole   api.Board // as it stands, without jobs
	rows    map[int]api.Row
	first   chan struct{} // closed once there is something to show
	running bool          // a goroutine looks

	// of that goroutine
	seen   []rowLook
	done   []int // shown still, the oldest first
	looked time.Time
}

// viewer is a stream of one client.
type viewer struct {
	news  chan struct{} // has room for one
	delta *api.Board    // nil = nothing has changed
	jobs  map[int]bool  // that changed
	gone  map[int]bool
}

// rowLook is what a row is made of, to see that it changed.
type rowLook struct {
	state                 string
	outcome               sched.Outcome
	priority              int32
	gpus                  sched.Range
	held                  int
	first                 sched.GPUID
	attempts, preemptions int32
}

func newHub(s *Server) *hub { return &hub{s: s, viewers: make(map[*viewer]bool)} }

// boardInput says from where on a board is wanted.
type boardInput struct {
	From string `query:"from" doc:"the last event that the client has seen: where nothing happened since, only changes are sent"`
	Last string `header:"Last-Event-ID" doc:"the same"`
}

// serve sends a board, and then what changes.
func (h *hub) serve(w http.ResponseWriter, r *http.Request, in *boardInput) error {
	seen := in.From
	if in.Last != "" {
		seen = in.Last
	}
	if _, err := (&eventsInput{From: seen}).first(0); err != nil {
		return err
	}
	v, whole, err := h.enter(r.Context())
	if err != nil {
		return err
	}
	defer h.leave(v)
	out, ctx, stop := newStream(w, r)
	defer stop()
	if id := strconv.FormatUint(whole.Seq, 10); id == seen {
		err = out.start(id)
	} else {
		err = out.document("board", id, whole)
	}
	for err == nil {
		select {
		case <-ctx.Done():
			return nil
		case <-v.news:
		}
		if d := h.take(v); d != nil {
			err = out.document("delta", strconv.FormatUint(d.Seq, 10), *d)
		}
	}
	return nil
}

// enter adds a viewer, and returns how things stand. The first one has the hub look.
func (h *hub) enter(ctx context.Context) (*viewer, api.Board, error) {
	v := &viewer{news: make(chan struct{}, 1), jobs: make(map[int]bool), gone: make(map[int]bool)}
	h.mu.Lock()
	h.viewers[v] = true
	if !h.running {
		h.running, h.first, h.rows = true, make(chan struct{}), make(map[int]api.Row)
		go h.watch(h.first)
	}
	first := h.first
	h.mu.Unlock()
	select {
	case <-first:
	case <-ctx.Done():
		h.leave(v)
		return nil, api.Board{}, ctx.Err()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	v.delta, v.jobs, v.gone = nil, make(map[int]bool), make(map[int]bool)
	whole := h.whole
	whole.Jobs = make([]api.Row, 0, len(h.rows))
	for _, id := range slices.Sorted(maps.Keys(h.rows)) {
		whole.Jobs = append(whole.Jobs, h.rows[id])
	}
	return v, whole, nil
}

func (h *hub) leave(v *viewer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.viewers, v)
}

// take returns what changed for a viewer since it last took something.
func (h *hub) take(v *viewer) *api.Board {
	h.mu.Lock()
	defer h.mu.Unlock()
	d := v.delta
	if d == nil {
		return nil
	}
	for _, id := range slices.Sorted(maps.Keys(v.jobs)) {
		d.Jobs = append(d.Jobs, h.rows[id])
	}
	d.Gone = slices.Sorted(maps.Keys(v.gone))
	v.delta, v.jobs, v.gone = nil, make(map[int]bool), make(map[int]bool)
	return d
}

// watch looks at what has changed until no one wants to know. first is closed once it has looked.
func (h *hub) watch(first chan struct{}) {
	h.seen, h.done, h.looked = nil, nil, time.Time{}
	shown, last := false, uint64(0)
	for {
		seq := h.s.o.Host.LastEvent()
		if now := time.Now(); !shown || seq != last || now.Sub(h.looked) >= devicesEvery {
			ctx, cancel := context.WithTimeout(context.Background(), api.Patience)
			if err := h.look(ctx, seq); err == nil {
				if last = seq; !shown {
					shown = true
					close(first)
				}
			}
			cancel()
		}
		time.Sleep(boardEvery)
		h.mu.Lock()
		over := len(h.viewers) == 0
		h.running = !over
		h.mu.Unlock()
		if over {
			return
		}
	}
}

// look finds what has changed, and has viewers know. What compare has found is lost if it is not shown, so all that may
// fail comes before.
func (h *hub) look(ctx context.Context, seq uint64) error {
	nodes, err := h.s.nodes(ctx, nil)
	if err != nil {
		return err
	}
	var changed []api.Row
	var gone []int
	tiles, now := api.Tiles{}, ""
	err = h.s.o.Host.Look(ctx, func(v *sched.View) {
		x := &writer{v: v, origin: h.s.origin, ref: h.s.o.Site.Ref}
		changed, gone = h.compare(x)
		tiles, now = tilesOf(v), x.when(v.Now)
	})
	if err != nil {
		return err
	}
	for i := range nodes.GPUs {
		tiles.Watts += nodes.GPUs[i].Watts
	}
	h.looked = time.Now()
	h.show(changed, gone, api.Board{Schema: "trainyard.board/v1", Seq: seq, Now: now, Unit: h.s.o.Site.Unit(),
		System: h.s.o.Host.Header().System, GPUs: nodes.GPUs, Nodes: nodes.Nodes, Tiles: tiles})
	return nil
}

// compare returns the rows that changed and the jobs that are shown no more.
func (h *hub) compare(x *writer) (rows []api.Row, gone []int) {
	fresh, changed := len(h.seen) == 0, []int(nil)
	for id := range x.v.Jobs {
		j := &x.v.Jobs[id]
		now := rowLook{stateOf(x.v, j), j.Outcome, j.Spec.Priority, j.Spec.GPUs, len(j.GPUs), sched.None, j.Attempts,
			j.Preemptions}
		if len(j.GPUs) > 0 {
			now.first = j.GPUs[0]
		}
		if id < len(h.seen) && h.seen[id] == now {
			continue
		}
		if id >= len(h.seen) {
			h.seen = append(h.seen, rowLook{})
		}
		was := h.seen[id]
		h.seen[id] = now
		if now.state == "done" && was.state != "done" {
			h.done = append(h.done, id)
		}
		if now.state != "done" || was.state != "done" {
			changed = append(changed, id)
		}
	}
	if fresh {
		slices.SortStableFunc(h.done, func(a, b int) int { return int(x.v.Jobs[a].End.Sub(x.v.Jobs[b].End)) })
	}
	if n := len(h.done) - boardDone; n > 0 {
		gone, h.done = slices.Clone(h.done[:n]), h.done[n:]
	}
	drop := make(map[int]bool, len(gone))
	for _, id := range gone {
		drop[id] = true
	}
	for _, id := range changed {
		if !drop[id] {
			rows = append(rows, x.row(sched.JobID(id)))
		}
	}
	return rows, gone
}

// show keeps what has changed for each viewer.
func (h *hub) show(changed []api.Row, gone []int, now api.Board) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range changed {
		h.rows[changed[i].ID] = changed[i]
	}
	for _, id := range gone {
		delete(h.rows, id)
	}
	delta := now
	if reflect.DeepEqual(now.GPUs, h.whole.GPUs) {
		delta.GPUs = nil
	}
	if reflect.DeepEqual(now.Nodes, h.whole.Nodes) {
		delta.Nodes = nil
	}
	quiet := len(changed) == 0 && len(gone) == 0 && delta.GPUs == nil && delta.Nodes == nil &&
		now.Tiles == h.whole.Tiles
	h.whole = now
	if quiet {
		return
	}
	for v := range h.viewers {
		v.merge(delta, changed, gone)
	}
}

// merge adds to what a viewer has not taken yet.
func (v *viewer) merge(d api.Board, changed []api.Row, gone []int) {
	if v.delta != nil {
		if d.GPUs == nil {
			d.GPUs = v.delta.GPUs
		}
		if d.Nodes == nil {
			d.Nodes = v.delta.Nodes
		}
	}
	v.delta = &d
	for i := range changed {
		v.jobs[changed[i].ID] = true
	}
	for _, id := range gone {
		v.gone[id] = true
		delete(v.jobs, id)
	}
	select {
	case v.news <- struct{}{}:
	default:
	}
}

// row is a job of a board.
func (x *writer) row(id sched.JobID) api.Row {
	j := &x.v.Jobs[id]
	spec := j.Spec
	r := api.Row{ID: int(id), Ref: x.ref(id, spec), Name: spec.Name, User: spec.User, State: stateOf(x.v, j),
		Outcome: j.Outcome.String(), Priority: int(spec.Priority), Min: int(spec.GPUs.Min), Want: int(spec.GPUs.Want),
		Max: int(spec.GPUs.Max), GPUs: []string{}, Attempt: int(j.Attempts), Preemptions: int(j.Preemptions),
		Submitted: x.when(j.Arrived)}
	if j.HoldsDevices() {
		for _, g := range j.GPUs {
			r.GPUs = append(r.GPUs, text.GPUName(x.v, g))
		}
	}
	if j.FirstStart != sched.None {
		r.Started = x.when(j.FirstStart)
	}
	if j.State == sched.Done {
		r.Ended = x.when(j.End)
	}
	return r
}

// tilesOf counts.
func tilesOf(v *sched.View) (t api.Tiles) {
	t.GPUs = len(v.GPUs)
	for i := range v.Nodes {
		if v.Nodes[i].State == sched.NodeGone {
			t.GPUs -= v.Nodes[i].Spec.GPUs
		}
	}
	held := make(map[sched.GPUID]bool)
	for id := range v.Jobs {
		j := &v.Jobs[id]
		switch state := stateOf(v, j); {
		case j.HoldsDevices():
			t.Running++
			for _, g := range j.GPUs {
				held[g] = true
			}
		case state == "waiting":
			t.Waiting++
			t.Asked += int(j.Spec.GPUs.Want)
		}
	}
	t.Busy = len(held)
	return t
}
