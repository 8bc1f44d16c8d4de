package serve

import (
	"encoding/json"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/web"
)

// Wrong tokens of one address within a minute after which it waits, and how many addresses are remembered.
const (
	wrongTokens = 10
	wrongWithin = time.Minute
	mostStrange = 10000
)

// livePage serves the page to those who come over the network, before a server of the API. Of a browser a token alone
// counts: a certificate it sends by itself, whoever made the page that asks.
type livePage struct {
	answers http.Handler
	known   func(r *http.Request, name string) bool
	now     func() time.Time

	mu    sync.Mutex
	wrong map[string][]time.Time // by address
}

func newLivePage(answers http.Handler, known func(*http.Request, string) bool) *livePage {
	return &livePage{answers: answers, known: known, now: time.Now, wrong: make(map[string][]time.Time)}
}

// ServeHTTP serves the files of the page, and passes on all else.
func (p *livePage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.TLS == nil { // by the socket
		p.answers.ServeHTTP(w, r)
		return
	}
	name := r.Host
	if host, _, err := net.SplitHostPort(name); err == nil {
		name = host
	}
	if r.Method == http.MethodGet && web.IsStatic(r.URL.Path) && p.known(r, name) {
		web.Serve(w, r.URL.Path, web.ByToken)
		return
	}
	if r.Header.Get("Authorization") == "" {
		if fromBrowser(r) {
			bare := *r.TLS
			bare.PeerCertificates = nil
			other := *r
			other.TLS = &bare
			r = &other
		}
		p.answers.ServeHTTP(w, r)
		return
	}
	address, _, _ := net.SplitHostPort(r.RemoteAddr)
	if p.tooMany(address) {
		problem := api.NewProblem(http.StatusTooManyRequests, "busy", "too many wrong tokens, want a minute of none",
			api.ErrBusy)
		refuseWith(w, problem)
		return
	}
	p.answers.ServeHTTP(&watched{ResponseWriter: w, page: p, address: address}, r)
}

// fromBrowser reports whether a browser has left its marks on a request.
func fromBrowser(r *http.Request) bool {
	for _, mark := range []string{"Sec-Fetch-Site", "Sec-Fetch-Mode", "Sec-Fetch-Dest", "Origin", "Referer"} {
		if r.Header.Get(mark) != "" {
			return true
		}
	}
	return false
}

// tooMany reports whether an address sent too many wrong tokens of late.
func (p *livePage) tooMany(address string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.recent(address)) >= wrongTokens
}

// recent returns when an address sent wrong tokens within the last minute.
func (p *livePage) recent(address string) []time.Time {
	list := p.wrong[address]
	for len(list) > 0 && p.now().Sub(list[0]) > wrongWithin {
		list = list[1:]
	}
	if len(list) == 0 {
		delete(p.wrong, address)
	}
	return list
}

// mistaken notes that an address sent a wrong token. Where there are too many addresses, old ones are forgotten.
func (p *livePage) mistaken(address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.wrong) >= mostStrange {
		for other := range p.wrong {
			_ = p.recent(other)
		}
	}
	if _, known := p.wrong[address]; known || len(p.wrong) < mostStrange {
		p.wrong[address] = append(p.recent(address), p.now())
	}
}

// watched is an answer of which it is noted if it says that its token is none.
type watched struct {
	http.ResponseWriter
	page    *livePage
	address string
}

// WriteHeader notes the status.
func (w *watched) WriteHeader(status int) {
	if status == http.StatusUnauthorized {
		w.page.mistaken(w.address)
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap has the connection controlled.
func (w *watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// refuseWith answers with a problem.
func refuseWith(w http.ResponseWriter, p *api.Problem) {
	w.Header().Set("Content-Type", p.ContentType(""))
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p)
}
