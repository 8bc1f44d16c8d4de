package server

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/api/site"
	"github.com/trainyard/trainyard/sched"
)

// Options say what a Server serves.
type Options struct {
	Host    Host
	Site    site.Site
	Meter   *Meter // among the sinks of the host
	Version string // of this program
	Streams int    // that there may be over the socket, see streams; 0 = 64
	Log     *slog.Logger
}

// Server answers requests about the jobs of a host while that runs.
type Server struct {
	o       Options
	origin  time.Time
	started time.Time
	docs    huma.API
	guard   *guard
	// thinking has those who look into the future one after the other, and explaining those who decide the past again:
	// it takes a processor and memory, and the past takes long.
	thinking, explaining chan struct{}
	metrics              http.Handler
	ahead                *foreteller
}

// New returns a server of the host in o: a handler, to which no one comes before it is listened for.
func New(o Options) (*Server, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	origin, err := time.Parse(time.RFC3339Nano, o.Host.Header().Origin)
	if err != nil {
		return nil, fmt.Errorf("api: origin of the log: %w", err)
	}
	s := &Server{o: o, origin: origin, started: time.Now(), thinking: make(chan struct{}, 1),
		explaining: make(chan struct{}, 1), ahead: &foreteller{host: o.Host}}
	mux := http.NewServeMux()
	s.guard = &guard{mux: mux, rules: rules, ids: make(map[string]string), site: o.Site, find: s.find, sole: s.sole,
		missing: s.missing, tag: tagger{o.Host}.of, owner: s.ownerOf, streams: newStreams(o.Streams)}
	s.docs = humago.New(mux, huma.Config{OpenAPI: describe(o.Version), Formats: huma.DefaultFormats,
		DefaultFormat: "application/json", RejectUnknownQueryParameters: true})
	s.routes()
	boundIntegers(s.docs)
	s.require()
	s.metrics = s.newMetrics()
	return s, nil
}

// ServeHTTP answers one request. Who asks is what the Site makes of its connection.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.guard.ServeHTTP(w, r) }

// find returns the job that a text names: by number, as a task of an array, or else the latest of that name.
func (s *Server) find(ctx context.Context, text string) (sched.JobID, error) {
	board := s.o.Host.Board()
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		if _, known, _ := board.Row(sched.JobID(n)); known {
			return sched.JobID(n), nil
		}
	}
	if id, task := taskOf(ctx, s.o.Host, text); task {
		return id, nil
	}
	owner, name := s.o.Site.Split(text)
	id, known := board.Find(name)
	if known && owner != "" {
		var err error
		if id, err = s.latestOf(ctx, owner, id); err != nil {
			return sched.None, err
		}
	}
	switch {
	case known && id != sched.None:
		return id, nil
	case s.o.Site.Expected(text):
		return sched.None, fmt.Errorf("job %q: %w", text, api.ErrEarly)
	}
	return sched.None, fmt.Errorf("job %q: %w", text, api.ErrNoJob)
}

// taskOf returns the task of an array that a text names, as 12_3; false if it names none. Names of jobs that look so
// come after: they are anyone's.
func taskOf(ctx context.Context, h Host, text string) (id sched.JobID, ok bool) {
	first, index, ok := sched.ParseTask(text)
	if !ok {
		return sched.None, false
	}
	ctx, cancel := context.WithTimeout(ctx, api.Patience)
	defer cancel()
	err := h.Look(ctx, func(v *sched.View) { id, ok = v.Task(first, index) })
	return id, ok && err == nil
}

// latestOf returns the latest of an owner's jobs among job id and those before it that have its name; None if there is
// none.
func (s *Server) latestOf(ctx context.Context, owner string, id sched.JobID) (sched.JobID, error) {
	ctx, cancel := context.WithTimeout(ctx, api.Patience)
	defer cancel()
	board := s.o.Host.Board()
	err := s.o.Host.Look(ctx, func(v *sched.View) {
		for id != sched.None && v.Jobs[id].Spec.User != owner {
			row, _, _ := board.Row(id)
			id = row.Older
		}
	})
	return id, err
}

// sole refuses a name that other jobs have that are not done, of those that are the caller's to change: what is done to
// one is not to be meant for another.
func (s *Server) sole(ctx context.Context, c *caller, text string) error {
	id := c.job
	if text == strconv.Itoa(int(id)) {
		return nil
	}
	if task, ok := taskOf(ctx, s.o.Host, text); ok && task == id {
		return nil
	}
	others := s.o.Host.Board().Others(id)
	owner, _ := s.o.Site.Split(text)
	if owner == "" && c.who.Role < api.Admin {
		owner = c.who.Name
	}
	if len(others) > 0 && owner != "" {
		err := s.o.Host.Look(ctx, func(v *sched.View) {
			others = slices.DeleteFunc(others, func(o sched.JobID) bool { return v.Jobs[o].Spec.User != owner })
		})
		if err != nil {
			return err
		}
	}
	if len(others) == 0 {
		return nil
	}
	row, _, _ := s.o.Host.Board().Row(id)
	newest := ""
	if row.State == sched.Done {
		newest = fmt.Sprintf(" (%v)", row.Outcome)
	}
	return fmt.Errorf("%w: %q may mean job %d%s or %s, want a number", api.ErrAmbiguous, text, id, newest,
		numbers(others))
}

// numbers lists jobs.
func numbers(list []sched.JobID) string {
	const most = 5
	words := make([]string, 0, most)
	for _, id := range list[:min(len(list), most)] {
		words = append(words, strconv.Itoa(int(id)))
	}
	if n := len(list) - most; n > 0 {
		return strings.Join(words, ", ") + fmt.Sprintf(" or %d more", n)
	}
	if n := len(words) - 1; n > 0 {
		return strings.Join(words[:n], ", ") + " or " + words[n]
	}
	return words[0]
}

// ownerOf returns whose a job is.
func (s *Server) ownerOf(ctx context.Context, id sched.JobID) (name string, err error) {
	ctx, cancel := context.WithTimeout(ctx, api.Patience)
	defer cancel()
	err = s.o.Host.Look(ctx, func(v *sched.View) { name = v.Jobs[id].Spec.User })
	return name, err
}
