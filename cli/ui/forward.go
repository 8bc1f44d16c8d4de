package ui

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/api/server"
	"github.com/trainyard/trainyard/web"
)

// keyPath is where a page exchanges a link for a key.
const keyPath = "/ui/key"

// forwarder serves the page on the loopback, and forwards what it asks for as the user who runs this.
type forwarder struct {
	host     *api.Client
	keys     *keys
	readOnly bool
	routes   *http.ServeMux // of the API: what it does not know is not forwarded
}

func newForwarder(host *api.Client, readOnly bool) *forwarder {
	f := &forwarder{host: host, keys: newKeys(), readOnly: readOnly, routes: http.NewServeMux()}
	for _, pattern := range server.Routes() {
		f.routes.HandleFunc(pattern, f.forward)
	}
	return f
}

// ServeHTTP answers a request. In this order it refuses what another page may have made a browser ask for, what is no
// path of ours, and who has no key.
func (f *forwarder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	web.Protect(w.Header())
	static := r.Method == http.MethodGet && web.IsStatic(r.URL.Path)
	if err := foreign(r, static && r.URL.Path == "/"); err != nil {
		refuse(w, err)
		return
	}
	switch {
	case r.URL.RawPath != "" || r.URL.Path != path.Clean(r.URL.Path) || r.URL.Host != "" || r.URL.Opaque != "":
		refuse(w, api.Refusal(http.StatusNotFound, "no such path, want one that is written plainly"))
	case static:
		by := web.ByLink
		if f.readOnly {
			by = web.Looking
		}
		web.Serve(w, r.URL.Path, by)
	case r.URL.Path == keyPath:
		f.exchange(w, r)
	default:
		f.admit(w, r)
	}
}

// foreign refuses a request under another name than the loopback's, from another page, or from another site. A link to
// the document may stand anywhere.
func foreign(r *http.Request, document bool) error {
	name := r.Host
	if host, _, err := net.SplitHostPort(name); err == nil {
		name = host
	}
	if !slices.Contains([]string{"127.0.0.1", "localhost", "::1"}, strings.Trim(name, "[]")) {
		return api.Refusal(http.StatusMisdirectedRequest, "host %q is not this one", r.Host)
	}
	for _, origin := range r.Header.Values("Origin") {
		if origin != "http://"+r.Host {
			return api.Refusal(http.StatusForbidden, "asked for by a page of %q", origin)
		}
	}
	for _, from := range r.Header.Values("Sec-Fetch-Site") {
		if from != "same-origin" && from != "none" && !document {
			return api.Refusal(http.StatusForbidden, "asked for by a page of another site")
		}
	}
	return nil
}

// exchange gives a key for a link.
func (f *forwarder) exchange(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		refuse(w, api.Refusal(http.StatusMethodNotAllowed, "%s is not for this path, want POST", r.Method))
		return
	}
	var in struct{ Link string }
	body, err := f.body(r)
	if err == nil && json.Unmarshal(body, &in) != nil {
		err = api.ProblemOf(api.ErrMalformed)
	}
	if err != nil {
		refuse(w, err)
		return
	}
	key, ok := f.keys.exchange(in.Link)
	if !ok {
		refuse(w, api.Refusal(http.StatusUnauthorized, "this link was opened before, or is too old; press Enter where "+
			"trainyard ui runs for another"))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]string{"key": key})
}

// admit forwards what bears a key. A cookie counts for nothing: it would be sent to other ports of this machine too.
func (f *forwarder) admit(w http.ResponseWriter, r *http.Request) {
	scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || !f.keys.holds(key) {
		w.Header().Set("WWW-Authenticate", "Bearer")
		refuse(w, api.Refusal(http.StatusUnauthorized, "who are you? open a link of trainyard ui"))
		return
	}
	_, pattern := f.routes.Handler(r)
	method, _, _ := strings.Cut(pattern, " ")
	switch {
	case pattern == "":
		refuse(w, api.Refusal(http.StatusNotFound, "no such path, or not by %s; see /openapi.json", r.Method))
	case method != r.Method: // HEAD for GET
		refuse(w, api.Refusal(http.StatusMethodNotAllowed, "%s is not for this path, want %s", r.Method, method))
	case f.readOnly && r.Method != http.MethodGet:
		refuse(w, api.Refusal(http.StatusForbidden, "this page changes nothing: trainyard ui runs with --read-only"))
	default:
		f.forward(w, r)
	}
}

// body reads what was sent, of JSON.
func (f *forwarder) body(r *http.Request) ([]byte, error) {
	if r.ContentLength == 0 {
		return nil, nil
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, api.NewProblem(http.StatusUnsupportedMediaType, "malformed",
			"a body of another type, want application/json", api.ErrMalformed)
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, api.MaxJobs+1))
	if err == nil && len(body) > api.MaxJobs {
		err = api.NewProblem(http.StatusRequestEntityTooLarge, "malformed", "a body that is too long", api.ErrMalformed)
	}
	return body, err
}

// carried are the headers that mean something to a host, or to the page.
var carried = []string{"Accept", "Last-Event-ID", "If-Match", api.KeyHeader}

// forward asks the host, and passes on what it answers as it comes.
func (f *forwarder) forward(w http.ResponseWriter, r *http.Request) {
	body, err := f.body(r)
	if err != nil {
		refuse(w, err)
		return
	}
	header := http.Header{}
	for _, name := range carried {
		if v := r.Header.Values(name); len(v) > 0 {
			header[http.CanonicalHeaderKey(name)] = v
		}
	}
	at := r.URL.EscapedPath()
	if r.URL.RawQuery != "" {
		at += "?" + r.URL.RawQuery
	}
	resp, err := f.host.Do(r.Context(), r.Method, at, body, header)
	if err != nil {
		refuse(w, err)
		return
	}
	defer resp.Body.Close()
	for _, name := range []string{"Content-Type", "ETag"} {
		if v := resp.Header.Get(name); v != "" {
			w.Header().Set(name, v)
		}
	}
	w.WriteHeader(resp.StatusCode)
	pass(w, resp.Body)
}

// pass copies piece by piece, so that streams come through at once.
func pass(w http.ResponseWriter, from io.Reader) {
	control := http.NewResponseController(w)
	const piece = 32 << 10
	buf := make([]byte, piece)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if _, bad := w.Write(buf[:n]); bad != nil {
				return
			}
			if control.Flush() != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// refuse answers with a problem.
func refuse(w http.ResponseWriter, err error) {
	p := (*api.Problem)(nil)
	if !errors.As(err, &p) {
		p = api.ProblemOf(err)
		if errors.Is(err, api.ErrNoManager) {
			p = api.NewProblem(http.StatusServiceUnavailable, "stopped", err.Error(), err)
		}
	}
	w.Header().Set("Content-Type", p.ContentType(""))
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p)
}
