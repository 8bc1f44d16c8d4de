package server

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/manager/jobfile"
	"github.com/trainyard/trainyard/sched"
)

// answer is a document.
type answer[T any] struct{ Body T }

// streamed is an answer that the handler writes itself.
type streamed = huma.StreamResponse

// get and post add a route: what f returns is its answer. Errors are told as problems.
func get[I, O any](s *Server, path, id, summary string, f func(context.Context, *I) (O, error)) {
	add(s, operation(http.MethodGet, path, id, summary), f)
}

func post[I, O any](s *Server, path, id, summary string, f func(context.Context, *I) (O, error)) {
	add(s, operation(http.MethodPost, path, id, summary), f)
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
func raw[I any](s *Server, path, id, summary, kind string, f func(w http.ResponseWriter, r *http.Request, in *I) error) {
	op := operation(http.MethodGet, path, id, summary)
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
	get(s, "/v1/jobs", "jobs", "How the jobs stand", s.jobs)
	get(s, "/v1/jobs/{job}", "job", "How a job stands", s.job)
	get(s, "/v1/jobs/{job}/wait", "wait", "How a job stands once it is done, or after a while", s.wait)
	get(s, "/v1/jobs/{job}/why", "why", "Why a job stands as it does, and what would change that", s.why)
	get(s, "/v1/decisions/{seq}", "explain", "A decision of the log, decided again", s.explain)
	raw(s, "/v1/jobs/{job}/logs", "logs", "What a job writes", "text/event-stream", s.logs)
	raw(s, "/v1/events", "events", "What happens, as it is durable: lines of the log", "text/event-stream", s.events)
	raw(s, "/v1/log", "log", "The log so far, as trainyard replay reads it", "application/jsonl", s.log)
	post(s, "/v1/jobs", "submit", "Hand jobs in, all of them or none", s.submit)
	post(s, "/v1/jobs/{job}/resize", "resize", "Give a job another width, or range of widths", s.resize)
	for verb, c := range map[string]sched.Command{"cancel": sched.CancelJob, "pause": sched.PauseJob, "resume": sched.ResumeJob, "requeue": sched.RequeueJob} {
		post(s, "/v1/jobs/{job}/"+verb, verb, commandText[c], func(ctx context.Context, in *aboutJob) (api.Job, error) { return s.command(ctx, in.Job, c) })
	}
	for verb, on := range map[string]bool{"drain": true, "undrain": false} {
		post(s, "/v1/nodes/"+verb, verb, drainText[on]+" the machine", func(ctx context.Context, _ *nothing) (api.Nodes, error) {
			return s.drain(ctx, func(ctx context.Context) error { return s.o.Manager.Drain(ctx, on) })
		})
		post(s, "/v1/gpus/{gpu}/"+verb, verb+"-gpu", drainText[on]+" a GPU", func(ctx context.Context, in *aboutGPU) (api.Nodes, error) {
			return s.drain(ctx, func(ctx context.Context) error { return s.drainGPU(ctx, in.GPU, on) })
		})
	}
}

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

func (s *Server) info(context.Context, *nothing) (api.Info, error) {
	h := s.o.Manager.Header()
	settings := maps.Clone(h.Settings)
	if settings == nil {
		settings = map[string]string{}
	}
	return api.Info{Schema: "trainyard.info/v1", Version: s.o.Version, State: s.o.Manager.Dir(), System: h.System, Settings: settings,
		PID: os.Getpid(), Since: s.began.UTC().Format(time.RFC3339), Problems: s.o.Manager.Problems()}, nil
}

// jobsInput filters a list.
type jobsInput struct {
	State []string `query:"state" doc:"only those that stand so: held, waiting, starting, running, stopping, done"`
	User  string   `query:"user" doc:"only those of a user"`
	Limit int      `query:"limit" minimum:"0" default:"0" doc:"at most so many, the latest; 0 = all"`
}

func (s *Server) jobs(ctx context.Context, in *jobsInput) (api.Jobs, error) {
	for _, state := range in.State {
		if !slices.Contains(states, state) {
			return api.Jobs{}, fmt.Errorf("%w: state %q, want one of %s", api.ErrMalformed, state, strings.Join(states, ", "))
		}
	}
	return s.list(ctx, in)
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
		row, _, changed := s.o.Manager.Board().Row(c.job)
		if row.State == sched.Done {
			return s.one(ctx, c.job)
		}
		select {
		case <-changed:
		case <-end:
			return s.one(ctx, c.job)
		case <-tick.C:
			if !c.admitted() {
				return api.Job{}, refusal(http.StatusUnauthorized, "no longer admitted")
			}
		case <-ctx.Done():
			return api.Job{}, api.ErrStopped
		}
	}
}

// command has done with a job what its user wants, and says how it stands then.
func (s *Server) command(ctx context.Context, name string, c sched.Command) (api.Job, error) {
	id := callerOf(ctx).job
	err := s.o.Manager.Command(ctx, id, c)
	if row, _, _ := s.o.Manager.Board().Row(id); c == sched.CancelJob && row.Cancelled {
		err = nil // who asks again is not told otherwise
	}
	if err != nil {
		return api.Job{}, fmt.Errorf("job %q: %w", name, err)
	}
	return s.one(ctx, id)
}

func (s *Server) drain(ctx context.Context, do func(context.Context) error) (api.Nodes, error) {
	if err := do(ctx); err != nil {
		return api.Nodes{}, err
	}
	return s.nodes(ctx, nil)
}

// drainGPU drains the GPU that is named, or numbered as nodes lists them.
func (s *Server) drainGPU(ctx context.Context, name string, on bool) error {
	list := s.o.Manager.Devices()
	for i := range list {
		if list[i].Name == name || strconv.Itoa(i) == name {
			return s.o.Manager.DrainGPUs(ctx, []sched.GPUID{sched.GPUID(i)}, on)
		}
	}
	return fmt.Errorf("%q: %w", name, api.ErrNoGPU)
}

type submitInput struct {
	Body api.Submission
}

// submit hands the jobs of a file in. Who is no Admin hands them in as himself.
func (s *Server) submit(ctx context.Context, in *submitInput) (api.Submitted, error) {
	jobs, err := s.parse(ctx, &in.Body)
	if err != nil {
		return api.Submitted{}, err
	}
	who := callerOf(ctx).who
	for i := range jobs {
		spec := &jobs[i].Spec
		if spec.User == "" {
			spec.User = who.Name
		}
		if spec.User != who.Name && who.Role < api.Admin {
			return api.Submitted{}, refusal(http.StatusForbidden, "job %s is one of %s, and you are %s", spec.Name, spec.User, who.Name)
		}
		if bad := inherit(&jobs[i].Task, in.Body.Env); bad != nil {
			return api.Submitted{}, fmt.Errorf("%w: job %s: %w", api.ErrMalformed, spec.Name, bad)
		}
	}
	doc := api.Submitted{Schema: "trainyard.submitted/v1", Dry: in.Body.Dry, Jobs: make([]api.Estimate, len(jobs))}
	if in.Body.Dry {
		err = s.foresee(ctx, jobs, &doc)
		return doc, err
	}
	first, err := s.o.Manager.Submit(ctx, jobs)
	if err != nil {
		return api.Submitted{}, err
	}
	for i := range jobs {
		doc.Jobs[i] = api.Estimate{ID: int(first) + i, Name: jobs[i].Spec.Name}
		if row, known, _ := s.o.Manager.Board().Row(first + sched.JobID(i)); known && row.Older != sched.None {
			older := int(row.Older)
			doc.Jobs[i].Older = &older
		}
	}
	return doc, nil
}

// smallFile is how many bytes of a job file are read beside others: its tree takes some 400 times as much memory.
const smallFile = 4 << 10

// parse reads the jobs of a submission.
func (s *Server) parse(ctx context.Context, in *api.Submission) ([]jobfile.Job, error) {
	name := in.Name
	if name == "" {
		name = "jobs.yaml"
	}
	switch {
	case filepath.Base(name) != name || name == "." || name == "..":
		return nil, fmt.Errorf("%w: name %q, want that of a file without its folder", api.ErrMalformed, name)
	case task.CheckDir(in.Dir) != nil:
		return nil, fmt.Errorf("%w: %w", api.ErrMalformed, task.CheckDir(in.Dir))
	}
	if len(in.File) > smallFile {
		select {
		case s.parsing <- struct{}{}:
			defer func() { <-s.parsing }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	jobs, err := jobfile.ParseJobs([]byte(in.File), filepath.Join(in.Dir, name))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", api.ErrMalformed, err)
	}
	return jobs, nil
}

// inherit gives a task those of the submitter's variables that it does not set itself.
func inherit(t *task.Task, env map[string]string) error {
	if len(env) == 0 {
		return nil
	}
	all := maps.Clone(env)
	maps.Copy(all, t.Env)
	t.Env = all
	return t.Validate()
}
