package ui

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/api/server"
	"github.com/trainyard/trainyard/web"
)

// page is a forwarder that listens on the loopback, before a host that notes what it is asked for.
type page struct {
	*testing.T
	f     *forwarder
	url   string
	asked atomic.Int64
	last  atomic.Pointer[http.Request]
	body  atomic.Value
}

func newPage(t *testing.T, readOnly bool) *page {
	t.Helper()
	p := &page{T: t}
	host := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.asked.Add(1)
		p.last.Store(r)
		b, _ := io.ReadAll(r.Body)
		p.body.Store(string(b))
		w.Header().Set("ETag", `"1-running"`)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"answered":true}`)
	}))
	t.Cleanup(host.Close)
	config := host.Client().Transport.(*http.Transport).TLSClientConfig
	c := api.DialNetwork(strings.TrimPrefix(host.URL, "https://"), "token-of-the-host", config)
	p.f = newForwarder(c, readOnly)
	here := httptest.NewServer(p.f)
	t.Cleanup(func() { here.Close(); _ = c.Close() })
	p.url = here.URL
	return p
}

// ask sends a request and returns its status and answer.
func (p *page) ask(method, path, body string, change ...func(*http.Request)) (int, string, http.Header) {
	p.Helper()
	req, err := http.NewRequestWithContext(p.Context(), method, p.url+path, strings.NewReader(body))
	if err != nil {
		p.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, c := range change {
		c(req)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		p.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), resp.Header
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

// key opens a link.
func (p *page) key() func(*http.Request) {
	p.Helper()
	status, text, _ := p.ask(http.MethodPost, keyPath, `{"link":"`+p.f.keys.link()+`"}`)
	var doc struct{ Key string }
	if status != http.StatusOK || json.Unmarshal([]byte(text), &doc) != nil || len(doc.Key) != 64 {
		p.Fatalf("%d %s, want a key of 32 bytes", status, text)
	}
	return header("Authorization", "Bearer "+doc.Key)
}

// filled is the path of a pattern with something for each parameter.
func filled(pattern string) (method, path string) {
	method, path, _ = strings.Cut(pattern, " ")
	return method, strings.NewReplacer("{job}", "1", "{gpu}", "0", "{node}", "n", "{seq}", "1", "{id}",
		"x").Replace(path)
}

// Ensure that without a key no route answers but the static files, whatever else is sent: none, a wrong, a spent or a
// late one, or one in a cookie or a query.
func TestKeys(t *testing.T) {
	p := newPage(t, false)
	link := p.f.keys.link()
	if status, _, _ := p.ask(http.MethodPost, keyPath, `{"link":"`+link+`"}`); status != http.StatusOK {
		t.Fatalf("%d for a new link", status)
	}
	late := p.f.keys.link()
	real := p.f.keys.now
	p.f.keys.now = func() time.Time { return real().Add(linkFor + time.Second) }
	for name, l := range map[string]string{"spent": link, "late": late, "wrong": secret(), "empty": "",
		"long": strings.Repeat("a", 1<<16)} {
		if status, text, _ := p.ask(http.MethodPost, keyPath, `{"link":"`+l+`"}`); status != http.StatusUnauthorized ||
			!strings.Contains(text, "opened before") {
			t.Errorf("a %s link: %d %s, want 401", name, status, text)
		}
	}
	for _, body := range []string{"{", "[]", `{"link":7}`} {
		if status, text, _ := p.ask(http.MethodPost, keyPath, body); status != http.StatusBadRequest {
			t.Errorf("%s: %d %s, want 400", body, status, text)
		}
	}
	p.f.keys.now = real
	held := p.key()
	wrong := map[string][]func(*http.Request){
		"none": nil, "wrong": {header("Authorization", "Bearer "+secret())},
		"empty":             {header("Authorization", "Bearer ")},
		"of a link":         {header("Authorization", "Bearer "+p.f.keys.link())},
		"token of the host": {header("Authorization", "Bearer token-of-the-host")},
		"in a cookie": {func(r *http.Request) {
			held(r)
			_, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
			r.AddCookie(&http.Cookie{Name: "trainyard.key", Value: key})
			r.Header.Del("Authorization")
		}},
		"in the query": {func(r *http.Request) {
			held(r)
			r.URL.RawQuery = "key=" + strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
			r.Header.Del("Authorization")
		}},
	}
	for _, pattern := range server.Routes() {
		method, path := filled(pattern)
		for name, change := range wrong {
			if status, text, _ := p.ask(method, path, "", change...); status != http.StatusUnauthorized {
				t.Errorf("%s with key %s: %d %s, want 401", pattern, name, status, text)
			}
		}
	}
	if n := p.asked.Load(); n > 0 {
		t.Errorf("the host was asked %d times", n)
	}
	for path, kind := range map[string]string{"/": "text/html", "/page.js": "text/javascript",
		"/page.css": "text/css"} {
		status, _, h := p.ask(http.MethodGet, path, "")
		if status != http.StatusOK || !strings.HasPrefix(h.Get("Content-Type"), kind) {
			t.Errorf("%s: %d, %s", path, status, h.Get("Content-Type"))
		}
		if h.Get("Content-Security-Policy") != web.LivePolicy || h.Get("Referrer-Policy") != "no-referrer" ||
			h.Get("Cache-Control") != "no-store" || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: headers %v", path, h)
		}
	}
}

// Ensure that what another page may have made a browser ask for is refused on every route and method, with a key too:
// under the name of another host, from another origin, from another site or port.
func TestForeignPages(t *testing.T) {
	p := newPage(t, false)
	held := p.key()
	port := p.url[strings.LastIndex(p.url, ":"):]
	cases := []struct {
		name   string
		change func(*http.Request)
		want   int
	}{
		{"rebound host", func(r *http.Request) { r.Host = "evil.example" + port }, http.StatusMisdirectedRequest},
		{"host that ends alike", func(r *http.Request) { r.Host = "evil.localhost" + port },
			http.StatusMisdirectedRequest},
		{"another loopback", func(r *http.Request) { r.Host = "127.0.0.2" + port }, http.StatusMisdirectedRequest},
		{"foreign origin", header("Origin", "https://evil.example"), http.StatusForbidden},
		{"null origin", header("Origin", "null"), http.StatusForbidden},
		{"another port", header("Origin", "http://127.0.0.1:1"), http.StatusForbidden},
		{"another name of it", header("Origin", "http://localhost"+port), http.StatusForbidden},
		{"https", header("Origin", strings.Replace(p.url, "http", "https", 1)), http.StatusForbidden},
		{"cross-site", header("Sec-Fetch-Site", "cross-site"), http.StatusForbidden},
		{"same-site", header("Sec-Fetch-Site", "same-site"), http.StatusForbidden},
	}
	patterns := append(server.Routes(), "POST "+keyPath, "GET /page.js", "GET /page.css")
	for _, pattern := range patterns {
		method, path := filled(pattern)
		for _, c := range cases {
			for _, m := range []string{method, http.MethodDelete, http.MethodOptions} {
				if status, text, h := p.ask(m, path, "", held, c.change); status != c.want ||
					h.Get("Access-Control-Allow-Origin") != "" {
					t.Errorf("%s: %s %s: %d, want %d\n%s", c.name, m, path, status, c.want, text)
				}
			}
		}
	}
	if n := p.asked.Load(); n > 0 {
		t.Errorf("the host was asked %d times", n)
	}
	if status, _, _ := p.ask(http.MethodGet, "/", "", header("Sec-Fetch-Site", "cross-site")); status != http.StatusOK {
		t.Errorf("a link from elsewhere to the document: %d, want 200", status)
	}
	for _, name := range []string{"localhost", "[::1]", "127.0.0.1"} { // any port: ssh -L may change it
		host := name + ":7777"
		if status, text, _ := p.ask(http.MethodGet, "/v1/info", "", held, header("Origin", "http://"+host),
			header("Sec-Fetch-Site", "same-origin"), func(r *http.Request) { r.Host = host }); status != http.StatusOK {
			t.Errorf("by %s: %d %s, want 200", host, status, text)
		}
	}
}

// Ensure that only routes of the API are forwarded, by their own method, with a body of JSON alone and with what means
// something to the host; and that who may only look changes nothing.
func TestForwarding(t *testing.T) {
	p := newPage(t, false)
	held := p.key()
	for _, pattern := range server.Routes() {
		method, path := filled(pattern)
		before := p.asked.Load()
		if status, text, _ := p.ask(method, path, "", held); status != http.StatusOK || p.asked.Load() != before+1 {
			t.Errorf("%s: %d %s, asked %d times", pattern, status, text, p.asked.Load()-before)
		}
		for _, m := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodHead,
			http.MethodDelete} {
			before = p.asked.Load()
			if path == "/v1/jobs" || path == "/v1/whatif" { // more is the name of a job, or a question
				continue
			}
			if status, _, _ := p.ask(m, path+"/more", "", held); status == http.StatusOK ||
				p.asked.Load() != before {
				t.Errorf("%s %s/more: %d, want it refused", m, path, status)
			}
		}
	}
	for _, path := range []string{"/v1/../v1/info", "//v1/info", "/v1/%6eodes", "/ui", "/v2/info", "/v1/jobs/"} {
		before := p.asked.Load()
		if status, _, _ := p.ask(http.MethodGet, path, "", held); status < http.StatusBadRequest ||
			p.asked.Load() != before {
			t.Errorf("%s: %d, want it refused", path, status)
		}
	}
	status, _, h := p.ask(http.MethodPost, "/v1/jobs/1/resize?x=%20y", `{"gpus_max":2}`, held,
		header("If-Match", `"1-running"`), header("Cookie", "a=b"), header("X-Other", "c"))
	q := p.last.Load()
	if status != http.StatusOK || h.Get("ETag") != `"1-running"` || q.Header.Get("If-Match") != `"1-running"` ||
		q.URL.RequestURI() != "/v1/jobs/1/resize?x=%20y" || p.body.Load() != `{"gpus_max":2}` ||
		q.Header.Get("Authorization") != "Bearer token-of-the-host" ||
		q.Header.Get("Cookie")+q.Header.Get("X-Other") != "" {
		t.Errorf("%d, the host saw %s %v %v", status, q.URL, q.Header, p.body.Load())
	}
	if status, _, _ := p.ask(http.MethodPost, "/v1/jobs", "x", held, header("Content-Type", "text/plain")); status !=
		http.StatusUnsupportedMediaType {
		t.Errorf("a body of text: %d, want 415", status)
	}
	if status, _, _ := p.ask(http.MethodPost, "/v1/jobs", strings.Repeat(" ", api.MaxJobs+1), held); status !=
		http.StatusRequestEntityTooLarge {
		t.Errorf("a long body: %d, want 413", status)
	}
	looking := newPage(t, true)
	held = looking.key()
	for _, pattern := range server.Routes() {
		method, path := filled(pattern)
		want := http.StatusOK
		if method == http.MethodPost {
			want = http.StatusForbidden
		}
		if status, text, _ := looking.ask(method, path, "", held); status != want {
			t.Errorf("%s of who may only look: %d %s, want %d", pattern, status, text, want)
		}
	}
}

// Ensure that a problem of the host is passed on as it is, and that a host that is away is one of its own.
func TestProblems(t *testing.T) {
	gone := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := api.NewProblem(http.StatusPreconditionFailed, "changed", "job 1 has changed meanwhile", api.ErrChanged)
		w.Header().Set("Content-Type", p.ContentType(""))
		w.WriteHeader(p.Status)
		_ = json.NewEncoder(w).Encode(p)
	}))
	c := api.DialNetwork(strings.TrimPrefix(gone.URL, "https://"), "",
		gone.Client().Transport.(*http.Transport).TLSClientConfig)
	p := &page{T: t, f: newForwarder(c, false)}
	here := httptest.NewServer(p.f)
	defer here.Close()
	p.url = here.URL
	held := p.key()
	status, text, h := p.ask(http.MethodPost, "/v1/jobs/1/cancel", "", held)
	if status != http.StatusPreconditionFailed || !strings.Contains(text, `"changed"`) ||
		h.Get("Content-Type") != "application/problem+json" {
		t.Errorf("%d %s %s, want the problem of the host", status, text, h.Get("Content-Type"))
	}
	gone.Close()
	if status, text, _ = p.ask(http.MethodGet, "/v1/info", "", held); status != http.StatusServiceUnavailable {
		t.Errorf("a host that is away: %d %s, want 503", status, text)
	}
}
