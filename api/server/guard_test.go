package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/manager/access"
)

// Ensure that every route of the router stands in the table of rules and in the description, and nothing else does: a
// route that someone adds without a rule fails here, and is refused to everybody until it has one.
func TestPromise19EveryRouteHasARule(t *testing.T) {
	r := newRig(t, 1, nil)
	var routes []string
	for path, item := range r.server.docs.OpenAPI().Paths {
		for method, op := range map[string]any{http.MethodGet: item.Get, http.MethodPost: item.Post,
			http.MethodPut:   item.Put,
			http.MethodPatch: item.Patch, http.MethodDelete: item.Delete, http.MethodHead: item.Head,
			http.MethodOptions: item.Options} {
			if fmt.Sprint(op) != "<nil>" {
				routes = append(routes, method+" "+path)
			}
		}
	}
	slices.Sort(routes)
	var want []string
	for pattern, ru := range rules {
		want = append(want, pattern)
		method, path, _ := strings.Cut(pattern, " ")
		req := httptest.NewRequest(method, strings.NewReplacer("{job}", "1", "{gpu}", "0", "{node}", "n", "{id}",
			"x").Replace(path), http.NoBody)
		if _, routed := r.server.guard.mux.Handler(req); routed != pattern {
			t.Errorf("%s is routed to %q", pattern, routed)
		}
		if ru.least == api.NoRole {
			t.Errorf("%s is open to everybody", pattern)
		}
		if strings.Contains(pattern, "{job}") && method != http.MethodGet && !ru.own {
			t.Errorf("%s does something to anybody's jobs", pattern)
		}
	}
	slices.Sort(want)
	if !slices.Equal(routes, want) {
		t.Errorf("routes\n%s\nrules\n%s", strings.Join(routes, "\n"), strings.Join(want, "\n"))
	}
}

// Ensure that docs/guide/api.md lists every route with the least role that its rule asks for, and nothing else.
func TestRoutesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/guide/api.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := make(map[string]string)
	for _, row := range regexp.MustCompile("(?m)^\\| `((?:GET|POST) [^?`]+)[^`]*`((?:, `[a-z]+`)*) \\| "+
		"([^|]+) \\|").FindAllStringSubmatch(string(page), -1) {
		listed[row[1]] = row[3]
		// in addition to the last of the path
		for _, verb := range regexp.MustCompile("[a-z]+").FindAllString(row[2], -1) {
			listed[row[1][:strings.LastIndex(row[1], "/")+1]+verb] = row[3]
		}
	}
	want := make(map[string]string)
	for pattern, ru := range rules {
		want[pattern] = ru.least.String()
		if ru.own {
			want[pattern] += ", of his own jobs"
		}
	}
	for _, pattern := range slices.Sorted(maps.Keys(want)) {
		if listed[pattern] != want[pattern] {
			t.Errorf("%s: role %q, want %q", pattern, listed[pattern], want[pattern])
		}
		delete(listed, pattern)
	}
	if len(listed) > 0 {
		t.Errorf("routes that are none: %v", listed)
	}
}

// Ensure that a route without a rule is refused to an admin too.
func TestRouteWithoutRule(t *testing.T) {
	r := newRig(t, 1, nil)
	reached := false
	r.server.guard.mux.HandleFunc("GET /v1/forgotten", func(http.ResponseWriter, *http.Request) { reached = true })
	resp, err := r.client.Do(t.Context(), http.MethodGet, "/v1/forgotten", nil, nil)
	if err == nil {
		_ = resp.Body.Close()
	}
	if !errors.Is(err, api.ErrForbidden) || reached {
		t.Errorf("%v, reached %t, want it refused", err, reached)
	}
}

// Ensure that the description is OpenAPI 3.1 and says who may use each route.
func TestOpenAPI(t *testing.T) {
	r := newRig(t, 1, nil)
	var doc struct {
		OpenAPI    string
		Paths      map[string]map[string]struct{ OperationID, Description string }
		Components struct{ Schemas map[string]any }
	}
	resp, err := r.client.Do(t.Context(), http.MethodGet, "/openapi.json", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&doc); err != nil {
		t.Fatal(err)
	}
	if doc.OpenAPI != "3.1.0" || doc.Components.Schemas["Job"] == nil {
		t.Errorf("openapi %q, schemas %d", doc.OpenAPI, len(doc.Components.Schemas))
	}
	n := 0
	for path, item := range doc.Paths {
		for method, op := range item {
			n++
			if !strings.HasPrefix(op.Description, "Least role: ") || op.OperationID == "" {
				t.Errorf("%s %s: %q %q", method, path, op.OperationID, op.Description)
			}
		}
	}
	if n != len(rules) {
		t.Errorf("%d operations, want %d", n, len(rules))
	}
}

// Ensure that what a page in someone's browser may have made is refused on every route, with a token that holds as
// well: under another host (DNS rebinding, as in CVE-2025-62593 of Ray), from another page (CSRF), also where the
// method is one that no guard thought of (CVE-2026-27482), whatever the client says it is.
func TestPromise19Browsers(t *testing.T) {
	t.Parallel()
	admin := ""
	r := newRig(t, 1, func(r *rig) {
		network(t)(r)
		admin = r.token("a", "root", api.Admin)
	})
	cases := []struct {
		name   string
		change func(*http.Request)
		want   int
	}{
		{"rebound host", func(q *http.Request) { q.Host = "evil.example" }, http.StatusMisdirectedRequest},
		{"rebound host with port", func(q *http.Request) {
			q.Host = "evil.example:" + strings.Split(r.o.Network,
				":")[1]
		}, http.StatusMisdirectedRequest},
		{"rebound to the name of the socket", func(q *http.Request) { q.Host = api.HostName },
			http.StatusMisdirectedRequest},
		{"another address of this machine", func(q *http.Request) { q.Host = "127.0.0.2" },
			http.StatusMisdirectedRequest},
		{"foreign origin", func(q *http.Request) { q.Header.Set("Origin", "https://evil.example") },
			http.StatusForbidden},
		{"null origin", func(q *http.Request) { q.Header.Set("Origin", "null") }, http.StatusForbidden},
		{"origin of another scheme", func(q *http.Request) { q.Header.Set("Origin", "http://"+r.o.Network) },
			http.StatusForbidden},
		{"two origins", func(q *http.Request) { q.Header["Origin"] = []string{r.url, "https://evil.example"} },
			http.StatusForbidden},
		{"cross-site", func(q *http.Request) { q.Header.Set("Sec-Fetch-Site", "cross-site") }, http.StatusForbidden},
		{"same-site", func(q *http.Request) { q.Header.Set("Sec-Fetch-Site", "same-site") }, http.StatusForbidden},
		{"forged agent", func(q *http.Request) {
			q.Header.Set("User-Agent", "curl/8.0")
			q.Header.Set("Origin", "https://evil.example")
		}, http.StatusForbidden},
	}
	for pattern := range rules {
		method, path, _ := strings.Cut(pattern, " ")
		path = strings.NewReplacer("{job}", "0", "{gpu}", "0").Replace(path)
		for _, c := range cases {
			for _, m := range []string{method, http.MethodDelete} {
				if got, text := r.ask(m, path, admin, "", c.change); got != c.want {
					t.Errorf("%s: %s %s: %d, want %d\n%s", c.name, m, path, got, c.want, text)
				}
			}
		}
	}
	for name, change := range map[string]func(*http.Request){
		"plain": nil,
		"own origin": func(q *http.Request) {
			q.Header.Set("Origin", r.url)
			q.Header.Set("Sec-Fetch-Site",
				"same-origin")
		},
		"typed in":         func(q *http.Request) { q.Header.Set("Sec-Fetch-Site", "none") },
		"by another name":  func(q *http.Request) { q.Host = "localhost" },
		"by name and port": func(q *http.Request) { q.Host = "localhost:7070" },
	} {
		if got, text := r.ask(http.MethodGet, "/v1/info", admin, "", change); got != http.StatusOK {
			t.Errorf("%s: %d, want 200\n%s", name, got, text)
		}
	}
}

// Ensure that only paths and methods as in the table are answered, and that no one without an identity learns which
// those are.
func TestPromise19PathsAndMethods(t *testing.T) {
	t.Parallel()
	admin := ""
	r := newRig(t, 1, func(r *rig) {
		network(t)(r)
		admin = r.token("a", "root", api.Admin)
	})
	cases := []struct {
		method, path string
		want         int
	}{
		{"GET", "/", 404},
		{"GET", "/v1", 404},
		{"GET", "/v2/jobs", 404},
		{"GET", "/x/../v1/jobs", 404},
		{"GET", "/v1/./jobs", 404},
		{"GET", "//v1/jobs", 404},
		{"GET", "/v1//jobs", 404},
		{"GET", "/v1/jobs/", 404},
		{"GET", "/v1/%6aobs", 404},
		{"GET", "/v1/x/%2e%2e/jobs", 404},
		{"POST", "/v1/jobs/..%2f..%2fv1/cancel", 404},
		{"POST", "/v1/jobs/../jobs/0/cancel", 404},
		{"GET", "/V1/jobs", 404},
		{"GET", "/docs", 404},
		{"GET", "/openapi.yaml", 404},
		{"GET", "/schemas/Job.json", 404},
		{"GET", "/debug/pprof/", 404},
		{"HEAD", "/v1/jobs", 405},
		{"DELETE", "/v1/jobs/0", 405},
		{"PATCH", "/v1/jobs/0", 405},
		{"PUT", "/v1/jobs", 405},
		{"OPTIONS", "/v1/jobs", 405},
		{"TRACE", "/v1/jobs", 405},
		{"GET", "/v1/jobs/0/cancel", 405},
		{"DELETE", "/v1/jobs/0/cancel", 405},
		{"get", "/v1/jobs", 405},
		{"BREW", "/v1/jobs", 405},
		{"BREW", "/nowhere", 404},
	}
	for _, c := range cases {
		got, text := r.ask(c.method, c.path, admin, "", nil)
		if got != c.want {
			t.Errorf("%s %s: %d, want %d\n%s", c.method, c.path, got, c.want, text)
		}
		for _, token := range []string{"", "trainyard_wrong", admin[:len(admin)-1], admin + "x",
			strings.ToUpper(admin)} {
			if got, text = r.ask(c.method, c.path, token, "", nil); got != http.StatusUnauthorized {
				t.Errorf("%s %s with token %q: %d, want 401\n%s", c.method, c.path, token, got, text)
			}
		}
	}
}

// Ensure that a body is refused where none belongs, where it is too long, whether it says so or not, and where it is no
// JSON.
func TestBodies(t *testing.T) {
	t.Parallel()
	admin := ""
	r := newRig(t, 1, func(r *rig) {
		network(t)(r)
		admin = r.token("a", "root", api.Admin)
	})
	long := `{"dir":"/","file":"` + strings.Repeat("x", api.MaxJobs) + `"}`
	chunked := func(q *http.Request) { q.ContentLength = -1 }
	cases := []struct {
		name, method, path, body string
		change                   func(*http.Request)
		want                     int
		says                     string
	}{
		{"where none belongs", "POST", "/v1/nodes/drain", "{}", nil, 413, "want at most 0"},
		{"of a GET", "GET", "/v1/jobs", "{}", nil, 413, "want at most 0"},
		{"too long", "POST", "/v1/jobs", long, func(q *http.Request) { q.Header.Set("Expect", "100-continue") }, 413,
			"want at most 2097152"},
		{"too long, in chunks", "POST", "/v1/jobs", long, chunked, 413, "too large"},
		{"a form", "POST", "/v1/jobs", "file=x", func(q *http.Request) {
			q.Header.Set("Content-Type",
				"application/x-www-form-urlencoded")
		}, 415, "application/json"},
		{"plain text", "POST", "/v1/jobs", "{}", func(q *http.Request) { q.Header.Set("Content-Type", "text/plain") },
			415, "application/json"},
		{"no JSON", "POST", "/v1/jobs", "{", nil, 400, "unexpected end"},
		{"an unknown key", "POST", "/v1/jobs", `{"file":"","dir":"/","fiel":""}`, nil, 422, "fiel"},
		{"none", "POST", "/v1/jobs", "", nil, 400, "body"},
		{"an unknown parameter", "GET", "/v1/jobs?stat=done", "", nil, 422, "stat"},
		{"a state that is none", "GET", "/v1/jobs?state=dead", "", nil, 400, "want one of held"},
		{"a folder that is none", "POST", "/v1/jobs", `{"file":"","dir":"lab"}`, nil, 400,
			`dir \"lab\", want an absolute path`},
		{"a name with a folder", "POST", "/v1/jobs", `{"file":"","dir":"/","name":"../x"}`, nil, 400,
			"without its folder"},
		{"a job file that is none", "POST", "/v1/jobs", `{"file":"jobs: [{name: x}]","dir":"/lab","name":"j.yaml"}`,
			nil, 400, "jobfile: /lab/j.yaml:1:8: a job without command"},
		{"a job that never starts", "POST", "/v1/jobs", `{"file":"jobs: [{command: [x], gpus: 9}]","dir":"/"}`, nil,
			422, "needs 9 slots, there are 1"},
		{"a reserved variable", "POST", "/v1/jobs",
			`{"file":"jobs: [{command: [x]}]","dir":"/","env":{"LD_PRELOAD":"x"}}`, nil, 400, "LD_PRELOAD is reserved"},
	}
	for _, c := range cases {
		if got, text := r.ask(c.method, c.path, admin, c.body, c.change); got != c.want || !strings.Contains(text,
			c.says) {
			t.Errorf("%s: %d, want %d and %q\n%s", c.name, got, c.want, c.says, text)
		}
	}
}

// lattice says, route by route and role by role, what is allowed. It stands here once more, in other words than in the
// table of rules, so that a slip there is found.
//
//	n no one, v viewer, u user about a job of his own, o user about a job of another, a admin
var lattice = map[string]string{
	"GET /openapi.json": "vuoa", "GET /metrics": "vuoa", "GET /v1/info": "vuoa", "GET /v1/nodes": "vuoa",
	"GET /v1/jobs": "vuoa", "GET /v1/price": "vuoa",
	"GET /v1/jobs/{job}": "vuoa", "GET /v1/jobs/{job}/wait": "vuoa", "GET /v1/jobs/{job}/logs": "vuoa",
	"GET /v1/events": "vuoa", "GET /v1/log": "vuoa",
	"GET /v1/jobs/{job}/why": "vuoa", "GET /v1/decisions/{seq}": "vuoa", "POST /v1/jobs/{job}/resize": "ua",
	"POST /v1/jobs": "uoa", "POST /v1/commands": "uoa", "POST /v1/jobs/{job}/cancel": "ua",
	"POST /v1/jobs/{job}/pause":   "ua",
	"POST /v1/jobs/{job}/resume":  "ua",
	"POST /v1/jobs/{job}/requeue": "ua", "POST /v1/nodes/drain": "a", "POST /v1/nodes/undrain": "a",
	"POST /v1/gpus/{gpu}/drain":   "a",
	"POST /v1/gpus/{gpu}/undrain": "a", "POST /v1/nodes/{node}/drain": "a", "POST /v1/nodes/{node}/undrain": "a",
	"POST /v1/clean": "a", "POST /v1/gpus/{gpu}/forget": "a",
	"GET /v1/history": "vuoa", "GET /v1/table": "vuoa", "GET /v1/board": "vuoa", "GET /v1/losses": "vuoa",
	"GET /v1/jobs/{job}/attempts": "vuoa", "GET /v1/calibration": "vuoa",
	"GET /v1/users": "vuoa", "GET /v1/usage": "vuoa", "GET /v1/series": "vuoa", "GET /v1/forecast": "vuoa",
	"POST /v1/jobs/{job}/remedy": "ua", "POST /v1/jobs/{job}/signal": "ua",
	"POST /v1/jobs/{job}/edit": "ua", "POST /v1/jobs/{job}/priority": "ua",
	"POST /v1/whatif": "uoa", "GET /v1/whatif/{id}": "uoa",
	"POST /v1/whatif/{id}/cancel": "uoa",
}

// answered is the status of what is allowed, where that is not 200.
var answered = map[string]int{
	"GET /v1/price":              http.StatusNotImplemented,      // the system puts no price on slots
	"POST /v1/gpus/{gpu}/forget": http.StatusConflict,            // it is there
	"POST /v1/jobs/{job}/remedy": http.StatusConflict,            // the job is held
	"POST /v1/jobs/{job}/signal": http.StatusUnprocessableEntity, // it does not run
	"POST /v1/whatif":            http.StatusAccepted,
	"GET /v1/whatif/{id}":        http.StatusNotFound, "POST /v1/whatif/{id}/cancel": http.StatusNotFound,
}

// inputs are what routes need to be asked.
var inputs = map[string]string{"POST /v1/commands": `{"command": "pause", "jobs": ["0"]}`,
	"POST /v1/jobs/{job}/resize": `{"gpus_max": 1}`, "POST /v1/clean": `{"dry": true}`,
	"POST /v1/jobs/{job}/remedy": `{"id": "gpus:1"}`, "POST /v1/jobs/{job}/edit": `{"keys": "grace: 9s"}`,
	"POST /v1/jobs/{job}/priority": `{"priority": -1}`,
	"POST /v1/jobs/{job}/signal":   `{"signal": "USR1"}`, "POST /v1/whatif": `{"systems": ["fifo"]}`}

// Ensure that every role may do what the lattice says and nothing else: viewers nothing to jobs, users nothing to those
// of others or to the machine (CVE-2025-43904, CVE-2026-65140 of Slurm).
func TestPromise20Lattice(t *testing.T) {
	t.Parallel()
	tokens := map[rune]string{'n': "trainyard_nobody"}
	r := newRig(t, 1, func(r *rig) {
		network(t)(r)
		tokens['v'] = r.token("v", "vera", api.Viewer)
		tokens['u'] = r.token("u", "ann", api.User)
		tokens['o'] = r.token("o", "bob", api.User)
		tokens['a'] = r.token("a", "root", api.Admin)
	})
	seq := r.decided()
	nodes, err := r.client.Nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for pattern := range rules {
		if lattice[pattern] == "" {
			t.Errorf("%s is not in the lattice", pattern)
		}
		method, path, _ := strings.Cut(pattern, " ")
		for role, token := range tokens {
			job := ""
			for _, j := range r.submit(later) {
				if j.Name == "of-ann" {
					job = strconv.Itoa(j.ID)
				}
			}
			p := strings.NewReplacer("{job}", job, "{gpu}", "0", "{node}", nodes.Node, "{seq}", strconv.FormatUint(seq,
				10), "{id}", "none").Replace(path)
			p += map[string]string{"GET /v1/jobs/{job}/wait": "?seconds=0", "GET /v1/series": "?name=held"}[pattern]
			body := inputs[pattern]
			if path == "/v1/jobs" && method == http.MethodPost {
				b, _ := json.Marshal(api.Submission{File: "jobs: [{command: [x], submit: 1h}]", Dir: "/"})
				body = string(b)
			}
			status, text := r.ask(method, p, token, body, nil)
			for status == http.StatusTooManyRequests { // another question is being answered
				status, text = r.ask(method, p, token, body, nil)
			}
			want := http.StatusForbidden
			switch {
			case strings.ContainsRune(lattice[pattern], role):
				want = cmp.Or(answered[pattern], http.StatusOK)
			case role == 'n':
				want = http.StatusUnauthorized
			}
			if status != want {
				t.Errorf("%s by %c: %d, want %d\n%s", pattern, role, status, want, text)
			}
		}
	}
}

// Ensure that a user submits jobs as himself, whoever he says they are of, and that a later job of a name does not let
// him at an earlier one of another.
func TestPromise20UserHandsInAsHimself(t *testing.T) {
	t.Parallel()
	ann := ""
	r := newRig(t, 1, func(r *rig) {
		network(t)(r)
		ann = r.token("u", "ann", api.User)
	})
	c := r.dial(ann)
	_, err := c.Submit(t.Context(), api.Submission{File: "jobs: [{command: [x], user: bob}]", Dir: "/"})
	if !errors.Is(err, api.ErrForbidden) {
		t.Errorf("a job of bob by ann: %v", err)
	}
	bobs := r.submit("jobs: [{command: [x], user: bob, name: same, submit: 1h}]")[0].ID
	doc, err := c.Submit(t.Context(), api.Submission{File: "jobs: [{command: [x], name: same, submit: 1h}]", Dir: "/"})
	if err != nil {
		t.Fatal(err)
	}
	j, err := c.Cancel(t.Context(), "same")
	if err != nil || j.ID != doc.Jobs[0].ID || j.User != "ann" {
		t.Errorf("cancelled %d of %s, %v; want %d of ann", j.ID, j.User, err, doc.Jobs[0].ID)
	}
	for range 2 {
		doc, err = c.Submit(t.Context(), api.Submission{File: "jobs: [{command: [x], name: same, submit: 1h}]",
			Dir: "/"})
		if err != nil {
			t.Fatal(err)
		}
	}
	want := fmt.Sprintf(`several jobs have that name: "same" may mean job %d or %d, want a number`, doc.Jobs[0].ID,
		doc.Jobs[0].ID-1)
	if _, err = c.Cancel(t.Context(), "same"); !errors.Is(err, api.ErrAmbiguous) || err.Error() != want {
		t.Errorf("one of two jobs of ann: %v, want %s", err, want)
	}
	if _, err = c.Cancel(t.Context(), fmt.Sprint(bobs)); !errors.Is(err, api.ErrForbidden) {
		t.Errorf("bob's job cancelled by ann: %v", err)
	}
	if dry, err := c.Submit(t.Context(), api.Submission{File: "jobs: [{command: [x]}]", Dir: "/",
		Dry: true}); err != nil || !dry.Dry || len(dry.Jobs) != 1 {
		t.Errorf("dry: %+v, %v", dry, err)
	}
	if all, err := c.Jobs(t.Context(), api.Filter{}); err != nil || all.Total != 4 {
		t.Errorf("%d jobs, %v; want 4: a dry submission is none", all.Total, err)
	}
}

// Ensure that a token is refused from the next request on once it is revoked or over, and that what is streamed to its
// bearer ends soon; that a certificate is admitted by its key alone, and revoked likewise.
func TestPromise20Revoke(t *testing.T) {
	t.Parallel()
	secret, short := "", ""
	cert, key, _ := newCert(t, "ann")
	r := newRig(t, 1, func(r *rig) {
		network(t)(r)
		tokens := access.OpenTokens(r.dir)
		secret = r.token("t", "ann", api.Viewer)
		short, _ = tokens.Add(access.Token{Name: "over", User: "ann", Role: "admin",
			Expires: time.Now().Add(-time.Second)})
		if err := tokens.AddCertificate(access.Token{Name: "c", User: "ann", Role: "user"}, cert); err != nil {
			t.Fatal(err)
		}
	})
	if _, err := r.dial(short).Info(t.Context()); !errors.Is(err, api.ErrForbidden) {
		t.Errorf("a token that is over: %v", err)
	}
	c := r.dial(secret)
	if _, err := c.Info(t.Context()); err != nil {
		t.Fatal(err)
	}
	began := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		resp, err := c.Do(t.Context(), http.MethodGet, "/v1/events?from=0", nil, nil)
		if err != nil {
			ended <- err
			return
		}
		defer resp.Body.Close()
		close(began)
		ended <- api.ReadEvents(resp.Body, func(api.StreamEvent) error { return nil })
	}()
	<-began
	if err := access.OpenTokens(r.dir).Revoke("t"); err != nil { // by another process, as it were
		t.Fatal(err)
	}
	revoked := time.Now()
	if _, err := c.Info(t.Context()); !errors.Is(err, api.ErrForbidden) {
		t.Errorf("replayed after it was revoked: %v", err)
	}
	select {
	case err := <-ended:
		t.Logf("the stream ended after %v: %v", time.Since(revoked), err)
	case <-time.After(waitLong):
		t.Error("the stream of a revoked token goes on")
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	strange, strangeKey, _ := newCert(t, "ann") // the same name, another key
	other, err := tls.X509KeyPair(strange, strangeKey)
	if err != nil {
		t.Fatal(err)
	}
	dial := func(p tls.Certificate) *api.Client {
		return api.DialNetwork(r.o.Network, "", &tls.Config{RootCAs: r.pool, Certificates: []tls.Certificate{p},
			MinVersion: tls.VersionTLS13})
	}
	if _, err = dial(pair).Info(t.Context()); err != nil {
		t.Errorf("by certificate: %v", err)
	}
	if _, err = dial(other).Info(t.Context()); !errors.Is(err, api.ErrForbidden) {
		t.Errorf("by a certificate of another: %v", err)
	}
	if err = access.OpenTokens(r.dir).Revoke("c"); err != nil {
		t.Fatal(err)
	}
	if _, err = dial(pair).Info(t.Context()); !errors.Is(err, api.ErrForbidden) {
		t.Errorf("by a revoked certificate: %v", err)
	}
}

// Ensure that no version of TLS before 1.3 is spoken.
func TestPromise19OldTLS(t *testing.T) {
	t.Parallel()
	token := ""
	r := newRig(t, 1, func(r *rig) {
		network(t)(r)
		token = r.token("a", "root", api.Admin)
	})
	older := api.DialNetwork(r.o.Network, token, &tls.Config{RootCAs: r.pool, MinVersion: tls.VersionTLS12,
		MaxVersion: tls.VersionTLS12})
	if _, err := older.Info(t.Context()); err == nil || !strings.Contains(err.Error(), "protocol version") {
		t.Errorf("by TLS 1.2: %v, want it refused", err)
	}
	if _, err := r.dial(token).Info(t.Context()); err != nil {
		t.Errorf("by TLS 1.3: %v", err)
	}
}

// Ensure that the network is not served without a certificate, a key and someone who may ask, on the loopback neither,
// and that a file of tokens that others may write admits no one.
func TestPromise19NetworkRefused(t *testing.T) {
	r := newRig(t, 1, nil)
	o := r.o
	for _, c := range []struct{ cert, key, says string }{
		{"", "", "without a certificate"},
		{"x", "", "without a certificate"},
		{"x", "y", "make a token first, by `trainyard token create NAME --user USER`"},
	} {
		o.Network, o.Cert, o.Key = "127.0.0.1:0", c.cert, c.key
		s, err := access.New(o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = s.ListenNetwork(); !errors.Is(err, api.ErrRefused) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	r.token("a", "root", api.Admin)
	path := filepath.Join(r.dir, access.TokensName)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err = os.Chmod(path, 0o622); err != nil {
		t.Fatal(err)
	}
	if _, err = access.OpenTokens(r.dir).List(); err == nil || !strings.Contains(err.Error(), "others may write it") {
		t.Errorf("a file of tokens that others may write: %v", err)
	}
}

// clientEnv names the state folder to a process of another user.
const clientEnv = "TRAINYARD_TEST_CLIENT"

// otherUser is what that process does.
func otherUser(dir string) {
	c, err := api.Dial(dir)
	if err != nil {
		fmt.Println("dial:", err)
		return
	}
	header := http.Header{"X-Forwarded-User": {"root"}, "X-Remote-User": {"root"},
		"Authorization": {"Bearer " + os.Getenv("TRAINYARD_TEST_TOKEN")}}
	for _, ask := range [][2]string{{"GET", "/v1/jobs"}, {"POST", "/v1/jobs/of-ann/cancel"},
		{"POST", "/v1/jobs/mine/cancel"}, {"POST", "/v1/nodes/drain"}} {
		resp, err := c.Do(context.Background(), ask[0], ask[1], nil, header)
		if err == nil {
			_ = resp.Body.Close()
		}
		fmt.Printf("%s %s: %v\n", ask[0], ask[1], err)
	}
}

// Ensure that who is at the other end of the socket is whom the kernel names, whatever he says: no one if the socket is
// not open to a group, even where someone opened its folder; a user if it is.
func TestPromise20PeerCredentials(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to be another user")
	}
	const none = 65534
	run := func(r *rig) string {
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		copied := filepath.Join(filepath.Dir(filepath.Dir(r.dir)), "client") // where the other user may run it
		text, err := os.ReadFile(exe)
		if err == nil {
			err = os.WriteFile(copied, text, 0o755)
		}
		for dir := filepath.Dir(r.dir); dir != os.TempDir() && err == nil; dir = filepath.Dir(dir) {
			err = os.Chmod(dir, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), copied)
		cmd.Env = []string{clientEnv + "=" + r.dir, "TRAINYARD_TEST_TOKEN=" + r.token("a", "root", api.Admin)}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: none, Gid: none}}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	r := newRig(t, 1, nil)
	r.submit(later)
	if said := run(r); strings.Count(said, "not allowed") != 4 {
		t.Errorf("a closed folder:\n%s", said)
	}
	if err := errors.Join(access.OpenTokens(r.dir).Revoke("a"), os.Chmod(r.dir, 0o777),
		os.Chmod(filepath.Join(r.dir, "control"), 0o777)); err != nil {
		t.Fatal(err)
	}
	if said := run(r); strings.Count(said, "who are you") != 4 {
		t.Errorf("a folder that someone opened:\n%s", said)
	}
	group := none
	r = newRig(t, 1, func(r *rig) { r.o.Group = &group })
	r.submit(later)
	r.submit("jobs: [{command: [x], submit: 1h, name: mine, user: " + access.UserName(none) + "}]")
	said := run(r)
	for _, want := range []string{"GET /v1/jobs: <nil>", "of-ann/cancel: job 0 is not one of " +
		access.UserName(none), "mine/cancel: <nil>", "drain: " + access.UserName(none) + " is user here"} {
		if !strings.Contains(said, want) {
			t.Errorf("a group's user: want %q\n%s", want, said)
		}
	}
	info, err := os.Stat(filepath.Join(r.dir, "control"))
	if err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}
