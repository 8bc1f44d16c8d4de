package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/api/site"
	"github.com/trainyard/trainyard/explain/text"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
)

// answer is a document.
type answer[T any] struct{ Body T }

// streamed is an answer that the handler writes itself.
type streamed = huma.StreamResponse

// get and post add a route: what f returns is its answer. Errors become problems.
func get[I, O any](s *Server, path, id, summary string, f func(context.Context, *I) (O, error)) {
	add(s, s.operation(http.MethodGet, path, id, summary), f)
}

func post[I, O any](s *Server, path, id, summary string, f func(context.Context, *I) (O, error)) {
	add(s, s.operation(http.MethodPost, path, id, summary), f)
}

func add[I, O any](s *Server, op huma.Operation, f func(context.Context, *I) (O, error)) {
	huma.Register(s.docs, op, func(ctx context.Context, in *I) (*answer[O], error) {
		callerOf(ctx).bodyRead()
		doc, err := f(ctx, in)
		if err != nil {
			return nil, problemOf(err)
		}
		return &answer[O]{doc}, nil
	})
}

// raw adds a route that writes its answer itself, of the given type.
func raw[I any](s *Server, path, id, summary, kind string, f func(w http.ResponseWriter, r *http.Request,
	in *I) error) {
	op := s.operation(http.MethodGet, path, id, summary)
	op.Responses = map[string]*huma.Response{"200": {Description: "OK", Content: map[string]*huma.MediaType{kind: {}}}}
	huma.Register(s.docs, op, func(_ context.Context, in *I) (*streamed, error) {
		return &streamed{Body: func(ctx huma.Context) {
			r, w := humago.Unwrap(ctx)
			if err := f(w, r, in); err != nil {
				refuse(w, err)
			}
		}}, nil
	})
}

// aboutJob is what names a job. The guard has found it: see caller.
type aboutJob struct {
	Job string `path:"job" doc:"number, or name: the latest job of that name"`
}

// aboutNode names a node.
type aboutNode struct {
	Node string `path:"node" doc:"name"`
}

// aboutGPU names a GPU or slot.
type aboutGPU struct {
	GPU string `path:"gpu" doc:"name or number"`
}

type nothing struct{}

// routes adds all routes.
func (s *Server) routes() {
	raw(s, "/openapi.json", "openapi", "This description", "application/json", s.openapi)
	raw(s, "/metrics", "metrics", "Figures for Prometheus", "text/plain", s.figures)
	get(s, "/v1/info", "info", "Who answers", s.info)
	get(s, "/v1/nodes", "nodes", "What jobs run on", s.nodes)
	get(s, "/v1/price", priceID, "What a GPU is worth, and what jobs bid", priced{s}.price)
	get(s, "/v1/jobs", "jobs", "How the jobs stand", s.jobs)
	raw(s, "/v1/table", "table", "How the jobs stand, as a table: of each what a list of many shows", "text/csv",
		tableOf(s.jobs))
	get(s, "/v1/jobs/{job}", "job", "How a job stands", s.job)
	get(s, "/v1/jobs/{job}/wait", "wait", "How a job stands once it is done, or after a while", s.wait)
	get(s, "/v1/jobs/{job}/why", "why", "Why a job stands as it does, and what would change that", s.why)
	get(s, "/v1/decisions/{seq}", explainID, "A decision of the log, decided again", s.explain)
	raw(s, "/v1/jobs/{job}/logs", "logs", "What a job writes", "text/event-stream", s.logs)
	raw(s, "/v1/events", "events", "What happens, as it is durable: lines of the log", "text/event-stream", s.events)
	raw(s, "/v1/log", "log", "The log so far, as trainyard replay reads it", "application/jsonl", s.log)
	past := newPast(s)
	raw(s, "/v1/history", historyID, "What happened so far, packed as reports hold it", "application/json",
		past.history)
	get(s, "/v1/losses", lossesID, "Where every GPU-hour went, in all and by user", past.losses)
	get(s, "/v1/jobs/{job}/attempts", attemptsID, "The attempts of a job", past.attempts)
	get(s, "/v1/calibration", calibrationID, "How often forecasts that were given came true", past.calibration)
	get(s, "/v1/users", usersID, "What each user got", past.users)
	get(s, "/v1/usage", usageID, "What jobs used, by day, user, group, model or job", past.usage)
	get(s, "/v1/series", seriesID, "A figure over time", past.series)
	get(s, "/v1/forecast", forecastID, "When jobs that are not done are expected to start and end", past.forecast)
	raw(s, "/v1/board", "board", "How all stands, and then what changes", "text/event-stream", newHub(s).serve)
	post(s, "/v1/jobs", "submit", "Hand jobs in, all of them or none", s.submit)
	post(s, "/v1/jobs/{job}/resize", "resize", "Give a job another width, or range of widths", s.resize)
	post(s, "/v1/jobs/{job}/remedy", "remedy", "Carry a remedy of why out, if it still helps", remedied{s}.use)
	whatifs{s}.addTo(s)
	post(s, "/v1/jobs/{job}/edit", editID, "Change keys of a job, all of them or none", editor{s}.edit)
	post(s, "/v1/jobs/{job}/priority", "priority", "Give a job another priority", editor{s}.prioritize)
	post(s, "/v1/jobs/{job}/signal", signalID, "Send a signal to processes of a job that runs", editor{s}.signal)
	post(s, "/v1/clean", cleanID, "Remove what jobs that are done left, but for checkpoints", s.clean)
	post(s, "/v1/gpus/{gpu}/forget", forgetID, "Count a GPU that is missing no more", func(ctx context.Context,
		in *aboutGPU) (api.Nodes, error) {
		return s.drain(ctx, func(ctx context.Context) error {
			at, err := namedGPU(ctx, s.o.Host, in.GPU)
			if err != nil {
				return err
			}
			return s.o.Site.(Forgetter).Forget(ctx, []sched.GPUID{at})
		})
	})
	post(s, "/v1/commands", "commands", "Do the same with several jobs", commander{s}.all)
	for verb, c := range commands {
		post(s, "/v1/jobs/{job}/"+verb, verb, commandText[c], func(ctx context.Context, in *aboutJob) (api.Job,
			error) {
			return s.command(ctx, in.Job, c)
		})
	}
	for verb, on := range map[string]bool{"drain": true, "undrain": false} {
		post(s, "/v1/nodes/"+verb, verb, drainText[on]+" the machine", func(ctx context.Context, _ *nothing) (api.Nodes,
			error) {
			return s.drain(ctx, func(ctx context.Context) error {
				return s.o.Site.Drain(ctx, callerOf(ctx).who, nil,
					on)
			})
		})
		post(s, "/v1/nodes/{node}/"+verb, verb+"-node", drainText[on]+" a node", func(ctx context.Context,
			in *aboutNode) (api.Nodes, error) {
			return s.drain(ctx, func(ctx context.Context) error { return s.drainNode(ctx, in.Node, on) })
		})
		post(s, "/v1/gpus/{gpu}/"+verb, verb+"-gpu", drainText[on]+" a GPU", func(ctx context.Context,
			in *aboutGPU) (api.Nodes, error) {
			return s.drain(ctx, func(ctx context.Context) error { return s.drainGPU(ctx, in.GPU, on) })
		})
	}
}

// commands are what may be done with jobs, by the operation that does it with one.
var commands = map[string]sched.Command{"cancel": sched.CancelJob, "pause": sched.PauseJob, "resume": sched.ResumeJob,
	"requeue": sched.RequeueJob}

var commandText = map[sched.Command]string{
	sched.CancelJob:  "End a job, whatever it does",
	sched.PauseJob:   "Take a job's GPUs away until it is resumed",
	sched.ResumeJob:  "Let a paused job wait for GPUs again",
	sched.RequeueJob: "Stop a job's attempt and let it wait for another",
}

var drainText = map[bool]string{true: "Start nothing new on", false: "Use again"}

func (s *Server) openapi(w http.ResponseWriter, _ *http.Request, _ *nothing) error {
	text, err := json.MarshalIndent(s.docs.OpenAPI(), "", " ")
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text)
	return nil
}

func (s *Server) figures(w http.ResponseWriter, r *http.Request, _ *nothing) error {
	s.metrics.ServeHTTP(w, r)
	return nil
}

func (s *Server) info(ctx context.Context, _ *nothing) (api.Info, error) {
	h := s.o.Host.Header()
	settings := maps.Clone(h.Settings)
	if settings == nil {
		settings = map[string]string{}
	}
	doc := api.Info{Schema: "trainyard.info/v1", Version: s.o.Version, Host: s.o.Site.Kind(), Can: s.capabilities(),
		System: h.System, Settings: settings, Since: s.started.UTC().Format(time.RFC3339), Problems: []string{}}
	s.o.Site.Describe(&doc)
	doc.Problems = append([]string{}, doc.Problems...) // a list, also where there are none
	doc.You, doc.Role = callerOf(ctx).who.Name, callerOf(ctx).who.Role.String()
	return doc, nil
}

// capabilities lists the operations that are served, in order.
func (s *Server) capabilities() []string {
	list := []string{}
	for _, id := range s.guard.ids {
		if _, missing := s.missing(id); !missing {
			list = append(list, id)
		}
	}
	slices.Sort(list)
	return list
}

// missing reports that an operation is not served here, and what to use instead.
func (s *Server) missing(id string) (instead string, missing bool) {
	if other, able := alternative(s.o.Host, s.o.Site, id); other != "" && !able {
		return other, true
	}
	return s.o.Site.Missing(id)
}

// alternative returns what to use where an operation is not served, "" = all serve it, and whether it is served here.
func alternative(host Host, on site.Site, id string) (instead string, able bool) {
	switch {
	case id == explainID:
		_, able = on.(Explainer)
		return "the events of the log: each decision has its reason", able
	case id == cleanID:
		_, able = on.(Cleaner)
		return "what the world itself has for that: a cluster removes the logs of pods with them", able
	case id == forgetID:
		_, able = on.(Forgetter)
		return "what the world itself has for that: a cluster drops the GPUs of a node with it", able
	case id == signalID:
		_, able = on.(Signaller)
		return "what the world itself has for that: kubectl exec runs kill in a pod of a cluster", able
	case id == editID:
		_, able = on.(Editor)
		return "what the world itself has for that: kubectl edit changes an object of a cluster", able
	case slices.Contains(ofSimulator, id):
		return "trainyard whatif --log, with the log", simulates(on)
	case id == forecastID:
		_, able = host.(Foreseer)
		return "why of each job", able
	case id == priceID:
		return "explain of each decision; the system that decides puts no price on GPUs", host.Pricer() != nil
	case id == calibrationID:
		_, able = host.(Calibrator)
		return "the forecasts of why, which are not kept here", able
	case ofHistory[id]:
		_, able = host.(Historian)
		return "the log: trainyard replay makes a report of it", able
	}
	return "", true
}

// cleanID is the operation that takes a Cleaner, forgetID that which takes a Forgetter.
const (
	cleanID  = "clean"
	editID   = "edit"
	forgetID = "forget-gpu"
	signalID = "signal"
)

type cleanInput struct{ Body api.Clean }

// clean removes what jobs that are done left.
func (s *Server) clean(ctx context.Context, in *cleanInput) (api.Cleaned, error) {
	return s.o.Site.(Cleaner).Clean(ctx, in.Body)
}

// explainID is the operation that takes a log that is kept whole.
const explainID = "explain"

type jobsInput struct {
	State []string `query:"state" doc:"only those that stand so: held, waiting, starting, running, stopping, done"`
	User  string   `query:"user" doc:"only those of a user"`
	Limit int      `query:"limit" minimum:"0" default:"0" doc:"at most so many, the latest; 0 = all"`
	Ahead int      `query:"ahead_ms" minimum:"-1" maximum:"5000" default:"0" doc:"milliseconds for a look into the future at most; 0 = none, -1 = 500; none of more than 200 jobs"`
}

func (s *Server) jobs(ctx context.Context, in *jobsInput) (api.Jobs, error) {
	for _, state := range in.State {
		if !slices.Contains(states, state) {
			return api.Jobs{}, fmt.Errorf("%w: state %q, want one of %s", api.ErrMalformed, state, strings.Join(states,
				", "))
		}
	}
	return s.list(ctx, in)
}

// tableOf writes the jobs of a list as comma-separated values.
func tableOf(list func(context.Context, *jobsInput) (api.Jobs, error),
) func(http.ResponseWriter, *http.Request, *jobsInput) error {
	return func(w http.ResponseWriter, r *http.Request, in *jobsInput) error {
		doc, err := list(r.Context(), in)
		if err != nil {
			return err
		}
		h := w.Header()
		h.Set("Content-Type", "text/csv; charset=utf-8")
		h.Set(api.UnitHeader, doc.Unit)
		h.Set(api.NowHeader, doc.Now)
		h.Set(api.ListedHeader, strconv.Itoa(len(doc.Jobs)))
		_ = api.WriteTable(w, doc.Jobs) // who no longer reads misses it
		return nil
	}
}

func (s *Server) job(ctx context.Context, _ *aboutJob) (api.Job, error) {
	return s.one(ctx, callerOf(ctx).job)
}

// waitInput says how long to wait.
type waitInput struct {
	aboutJob
	Seconds int `query:"seconds" minimum:"0" maximum:"50" default:"10" doc:"at most"`
}

func (s *Server) wait(ctx context.Context, in *waitInput) (api.Job, error) {
	c := callerOf(ctx)
	end := time.After(time.Duration(in.Seconds) * time.Second)
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		row, _, changed := s.o.Host.Board().Row(c.job)
		if row.State == sched.Done {
			return s.one(ctx, c.job)
		}
		select {
		case <-changed:
		case <-end:
			return s.one(ctx, c.job)
		case <-tick.C:
			if !c.admitted() {
				return api.Job{}, api.Refusal(http.StatusUnauthorized, "no longer admitted")
			}
		case <-ctx.Done():
			return api.Job{}, api.ErrStopped
		}
	}
}

// command has done with a job what its user wants, and says how it stands then.
func (s *Server) command(ctx context.Context, name string, c sched.Command) (api.Job, error) {
	id := callerOf(ctx).job
	err := s.o.Site.Command(onlyIfSeen(ctx), callerOf(ctx).who, id, c)
	if row, _, _ := s.o.Host.Board().Row(id); c == sched.CancelJob && row.Cancelled && !errors.Is(err, api.ErrChanged) {
		err = nil // who asks again gets the same answer
	}
	if err != nil {
		return api.Job{}, fmt.Errorf("job %q: %w", name, err)
	}
	return s.one(ctx, id)
}

// drain has done what keeps new jobs from nodes or GPUs, and says how those stand then.
func (s *Server) drain(ctx context.Context, do func(context.Context) error) (api.Nodes, error) {
	if err := do(ctx); err != nil {
		return api.Nodes{}, err
	}
	return s.nodes(ctx, nil)
}

// drainNode drains the node that is named.
func (s *Server) drainNode(ctx context.Context, name string, on bool) error {
	var ids []sched.NodeID
	err := s.o.Host.Look(ctx, func(v *sched.View) {
		for n := range v.Nodes {
			if v.Nodes[n].Spec.Name == name && v.Nodes[n].State != sched.NodeGone {
				ids = append(ids, sched.NodeID(n))
			}
		}
	})
	switch {
	case err != nil:
		return err
	case ids == nil:
		return fmt.Errorf("%q: %w", name, api.ErrNoNode)
	}
	return s.o.Site.Drain(ctx, callerOf(ctx).who, ids, on)
}

// drainGPU drains the GPU that is named, or numbered as nodes lists them.
func (s *Server) drainGPU(ctx context.Context, name string, on bool) error {
	at, err := namedGPU(ctx, s.o.Host, name)
	if err != nil {
		return err
	}
	return s.o.Site.DrainGPUs(ctx, callerOf(ctx).who, []sched.GPUID{at}, on)
}

// namedGPU returns the GPU that is named, or numbered as nodes lists them.
func namedGPU(ctx context.Context, h Host, name string) (sched.GPUID, error) {
	at := sched.GPUID(sched.None)
	err := h.Look(ctx, func(v *sched.View) {
		for g := range v.GPUs {
			if text.GPUName(v, sched.GPUID(g)) == name || strconv.Itoa(g) == name {
				at = sched.GPUID(g)
				return
			}
		}
	})
	if err == nil && at == sched.None {
		err = fmt.Errorf("%q: %w", name, api.ErrNoGPU)
	}
	return at, err
}

type submitInput struct {
	// Key is of the client's making: who asks again under it gets the same answer, and the jobs are there once.
	Key  string `header:"Idempotency-Key" doc:"of the client's making, 1 to 64 of A-Z a-z 0-9 . _ : -"`
	Body api.Submission
}

// submit submits the jobs of a file as those of the one who asks.
func (s *Server) submit(ctx context.Context, in *submitInput) (api.Submitted, error) {
	batch, err := s.o.Site.Read(ctx, callerOf(ctx).who, &in.Body)
	if err != nil {
		return api.Submitted{}, err
	}
	names := batch.Names()
	doc := api.Submitted{Schema: "trainyard.submitted/v1", Dry: in.Body.Dry, Jobs: make([]api.Estimate, len(names))}
	for i, name := range names {
		doc.Jobs[i] = api.Estimate{ID: int(sched.None), Name: name}
	}
	if in.Body.Dry {
		err = s.foresee(ctx, batch, &doc)
		return doc, err
	}
	list, err := submitBatch(ctx, batch, in.Key)
	if err != nil {
		return api.Submitted{}, err
	}
	for i := range list {
		s.accepted(&doc.Jobs[i], list[i])
		s.ahead.submitted(list[i].ID)
	}
	note(ctx, s.o.Host, s.o.Site.Unit(), doc.Jobs)
	return doc, nil
}

// leaves returns who is stopped by his user alone.
func leaves(h Host) sched.Unsaved {
	header := h.Header()
	return system.Leaves(&header)
}

// note says of jobs that were submitted what their submitter may not expect. They are durable: nothing is said where
// there is no time to look.
func note(ctx context.Context, h Host, unit string, jobs []api.Estimate) {
	header := h.Header()
	leave, stops, ranks := system.Leaves(&header), system.StopsAny(&header), system.LooksAtPriority(&header)
	_ = h.Look(ctx, func(v *sched.View) {
		for i := range jobs {
			id := jobs[i].ID
			if id < 0 || id >= len(v.Jobs) {
				continue
			}
			jobs[i].Notes = text.Left(&v.Jobs[id], leave, unit)
			if stops {
				jobs[i].Notes = text.StoppedAllTheSame(&v.Jobs[id])
			}
			if !ranks {
				jobs[i].Notes = append(jobs[i].Notes, text.Unranked(&v.Jobs[id], header.System)...)
			}
		}
	})
}

// submitBatch submits jobs, under a key unless that is "".
func submitBatch(ctx context.Context, batch site.Batch, key string) ([]site.Accepted, error) {
	if key == "" {
		return batch.Submit(ctx)
	}
	if err := api.CheckKey(key); err != nil {
		return nil, err
	}
	keyed, able := batch.(Keyed)
	if !able {
		return nil, api.NotHere(api.KeyHeader, "no key, and ask once")
	}
	return keyed.SubmitOnce(ctx, key)
}

// accepted says what names a job that was submitted, and which job before it had its name.
func (s *Server) accepted(doc *api.Estimate, a site.Accepted) {
	doc.ID, doc.Ref = int(a.ID), a.Ref
	if a.ID == sched.None {
		return
	}
	if row, known, _ := s.o.Host.Board().Row(a.ID); known && row.Older != sched.None {
		older := int(row.Older)
		doc.Older = &older
	}
}
