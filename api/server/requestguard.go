package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/api/site"
	"github.com/trainyard/trainyard/sched"
)

// Limits of requests.
const writing = time.Minute // for an answer, or a piece of a stream, to be taken

// caller is who asks, and about which job, as the guard found it: what is decided about a job and what is done to it
// must not be about two jobs of a name.
type caller struct {
	who  api.Who
	job  sched.JobID // None = the route is about none
	seen seen        // as which he saw the job
	// admitted reports whether he would be let in again.
	admitted func() bool
	// bodyRead is to be called once the body was read: it had a time limit.
	bodyRead func()
}

type callerKey struct{}

// callerOf returns who asks.
func callerOf(ctx context.Context) caller { return ctx.Value(callerKey{}).(caller) }

// guard stands before all routes and refuses, before anything of a body is read, all that the table of rules does not
// allow:
//
//  1. that may come from a page in a user's browser, which reaches what the page's maker cannot: under the name of
//     another host, or with the marks that browsers leave;
//  2. without an identity, so that no one else learns what there is;
//  3. to a path that is not as it stands in the table, or by another method;
//  4. from someone who may not do that, or not to this job, and for what is not served here;
//  5. with a body where none belongs, or a larger one, or another than JSON.
type guard struct {
	mux   *http.ServeMux
	rules map[string]rule
	ids   map[string]string // of operations, by pattern
	site  site.Site
	find  func(ctx context.Context, job string) (sched.JobID, error)
	// Refuses a text that may mean another job than was found.
	sole    func(ctx context.Context, c *caller, job string) error
	missing func(operation string) (instead string, missing bool)
	// Names how a job stands: what a later request under If-Match goes by.
	tag     func(ctx context.Context, id sched.JobID) (string, error)
	owner   func(ctx context.Context, id sched.JobID) (string, error)
	streams *streams
}

// ServeHTTP lets a request pass or refuses it.
func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cache-Control", "no-store")
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Now().Add(writing)) // what an earlier request of the connection set is over
	c, ru, err := g.check(r)
	if err == nil && ru.stream {
		var leave func()
		if leave, err = g.streams.enter(r, &c, ru.few); err == nil {
			defer leave()
		}
	}
	if err != nil {
		refuse(w, err)
		return
	}
	g.showTag(w, r, &c)
	c.bodyRead = func() { _ = control.SetReadDeadline(time.Time{}) } // its end would look like a client that left
	r.Body = http.MaxBytesReader(w, r.Body, ru.body+1)               // huma wants to see that there is more
	ctx := context.WithValue(r.Context(), callerKey{}, c)
	if !ru.stream {
		within := cmp.Or(ru.within, api.Patience)
		_ = control.SetWriteDeadline(time.Now().Add(within + writing))
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, within)
		defer cancel()
	}
	g.mux.ServeHTTP(w, r.WithContext(ctx))
}

// refuse answers with a problem, and reads nothing more from the connection.
func refuse(w http.ResponseWriter, err error) {
	p := (*api.Problem)(nil)
	errors.As(problemOf(err), &p)
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	w.Header().Set("Connection", "close")
	w.Header().Set("Content-Type", p.ContentType(""))
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p)
}

// check decides about a request.
func (g *guard) check(r *http.Request) (c caller, ru rule, err error) {
	err = g.browser(r)
	if err != nil {
		return c, ru, err
	}
	c.job = sched.None
	c.who, c.admitted = g.site.Identify(r)
	if c.who.Role == api.NoRole {
		return c, ru, api.Refusal(http.StatusUnauthorized, "who are you? %s", g.site.Hint(r))
	}
	pattern, err := g.route(r)
	if err != nil {
		return c, ru, err
	}
	ru, known := g.rules[pattern]
	if !known {
		return c, ru, api.Refusal(http.StatusForbidden, "no one may %s", pattern)
	}
	err = g.admit(r, pattern, &c, &ru)
	if err != nil {
		return c, ru, err
	}
	c.seen = seenBy(r)
	return c, ru, cmp.Or(g.unambiguous(r, pattern, &c), checkBody(r, ru.body))
}

// admit refuses what the caller may not do and what is not served here, and finds the job that a request is about.
func (g *guard) admit(r *http.Request, pattern string, c *caller, ru *rule) error {
	right := site.Right{Operation: g.ids[pattern], Least: ru.least, Own: ru.own, Job: sched.None}
	if err := g.site.May(r.Context(), c.who, right); err != nil {
		return err
	}
	if instead, missing := g.missing(right.Operation); missing {
		return api.NotHere(pattern, instead)
	}
	if !ru.always {
		if err := g.site.Ready(); err != nil {
			return err
		}
	}
	job, err := g.jobOf(r, pattern)
	if c.job = job; err != nil || job == sched.None {
		return err
	}
	right.Job = c.job
	right.Owner = func(ctx context.Context) (string, error) { return g.owner(ctx, c.job) }
	return g.site.May(r.Context(), c.who, right)
}

// browser refuses what a page may have made a browser ask for: by a name that leads here only for that page (DNS
// rebinding), from another page (Origin), or with what browsers say of themselves. It holds for every method and route.
// What a client says it is (User-Agent) counts for nothing.
func (g *guard) browser(r *http.Request) error {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	if !g.site.Known(r, host) {
		return api.Refusal(http.StatusMisdirectedRequest, "host %q is not this one", r.Host)
	}
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	for _, origin := range r.Header.Values("Origin") {
		if origin != scheme+r.Host {
			return api.Refusal(http.StatusForbidden, "asked for by a page of %q", origin)
		}
	}
	for _, from := range r.Header.Values("Sec-Fetch-Site") {
		if from != "same-origin" && from != "none" {
			return api.Refusal(http.StatusForbidden, "asked for by a page of another site")
		}
	}
	return nil
}

// route returns the route of a request, if its path and method are as they stand in the table.
func (g *guard) route(r *http.Request) (pattern string, err error) {
	p := r.URL.Path
	if r.URL.RawPath != "" || p != path.Clean(p) || r.URL.Host != "" || r.URL.Opaque != "" {
		return "", api.Refusal(http.StatusNotFound, "no such path, want one that is written plainly")
	}
	_, pattern = g.mux.Handler(r)
	method, _, _ := strings.Cut(pattern, " ")
	if method == r.Method {
		return pattern, nil
	}
	if methods := g.methods(r); len(methods) > 0 {
		return "", api.Refusal(http.StatusMethodNotAllowed, "%s is not for this path, want %s", r.Method,
			strings.Join(methods, " or "))
	}
	return "", api.Refusal(http.StatusNotFound, "no such path, see /openapi.json")
}

// methods returns those that the path of a request knows.
func (g *guard) methods(r *http.Request) (list []string) {
	for _, m := range []string{http.MethodGet, http.MethodPost} {
		other := *r
		other.Method = m
		if _, pattern := g.mux.Handler(&other); pattern != "" {
			list = append(list, m)
		}
	}
	return list
}

// jobOf returns the job that a request is about.
func (g *guard) jobOf(r *http.Request, pattern string) (sched.JobID, error) {
	i := slices.Index(strings.Split(pattern, "/"), "{job}")
	if i < 0 {
		return sched.None, nil
	}
	return g.find(r.Context(), strings.Split(r.URL.Path, "/")[i])
}

// unambiguous refuses to do something to a job by a name that others of the caller's have too.
func (g *guard) unambiguous(r *http.Request, pattern string, c *caller) error {
	i := slices.Index(strings.Split(pattern, "/"), "{job}")
	if i < 0 || r.Method != http.MethodPost {
		return nil
	}
	return g.sole(r.Context(), c, strings.Split(r.URL.Path, "/")[i])
}

// checkBody refuses a body that does not belong, as far as its headers say.
func checkBody(r *http.Request, limit int64) error {
	if r.ContentLength == 0 {
		return nil
	}
	if r.ContentLength > limit || limit == 0 {
		detail := fmt.Sprintf("a body of %d bytes, want at most %d", r.ContentLength, limit)
		return api.NewProblem(http.StatusRequestEntityTooLarge, "malformed", detail, api.ErrMalformed)
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return api.NewProblem(http.StatusUnsupportedMediaType, "malformed",
			"a body of another type, want application/json", api.ErrMalformed)
	}
	return nil
}
