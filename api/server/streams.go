package server

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"sync"

	"github.com/trainyard/trainyard/api"
)

// Shares of streams.
const (
	usualStreams = 64
	eachToken    = 32 // over the network, of one token or certificate
)

// streams are those that are open. No one keeps others from theirs: one who asks leaves a quarter to others. Over the
// network a token has 32 at most, and all of them together a quarter as many as there may be over the socket.
type streams struct {
	socket, network int // as many as there may be

	mu  sync.Mutex
	by  map[origin]int
	few map[string]int // by path, of those of which there are few
}

// origin is who has a stream; the zero value of who is all together.
type origin struct {
	network bool
	who     string
}

// newStreams returns room for so many streams over the socket; 0 = 64.
func newStreams(socket int) *streams {
	if socket == 0 {
		socket = usualStreams
	}
	return &streams{socket: socket, network: max(socket/4, 1), by: make(map[origin]int), few: make(map[string]int)}
}

// enter takes the place of one more stream, until leave is called; few bounds those of its path, 0 = it does not.
// ErrBusy: there is none for who asks.
func (s *streams) enter(r *http.Request, c *caller, few int) (leave func(), err error) {
	path := r.URL.Path
	from := originOf(r, c)
	all := origin{network: from.network}
	most, each := s.socket, s.socket-s.socket/4
	if from.network {
		most, each = s.network, min(eachToken, s.network-s.network/4)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.by[from] >= each:
		return nil, fmt.Errorf("%w: %s has %d streams open, want less", api.ErrBusy, c.who.Name, s.by[from])
	case s.by[all] >= most:
		return nil, fmt.Errorf("%w: %d streams are open, want less", api.ErrBusy, s.by[all])
	case few > 0 && s.few[path] >= few:
		return nil, fmt.Errorf("%w: %d of %s are open, want less", api.ErrBusy, few, path)
	}
	if few == 0 {
		path = ""
	}
	s.count(from, all, path, 1)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.count(from, all, path, -1)
	}, nil
}

// count adds n streams.
func (s *streams) count(from, all origin, path string, n int) {
	for _, o := range []origin{from, all} {
		if s.by[o] += n; s.by[o] == 0 {
			delete(s.by, o)
		}
	}
	if path != "" {
		s.few[path] += n
	}
}

// open returns how many there are.
func (s *streams) open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.by[origin{}] + s.by[origin{network: true}]
}

// originOf says who a request is from: over the network the token or certificate counts, on the socket the user.
func originOf(r *http.Request, c *caller) origin {
	switch {
	case r.TLS == nil:
		return origin{who: "user " + c.who.Name}
	case r.Header.Get("Authorization") != "":
		return origin{true, fmt.Sprintf("token %x", sha256.Sum256([]byte(r.Header.Get("Authorization"))))}
	case len(r.TLS.PeerCertificates) > 0:
		return origin{true, fmt.Sprintf("certificate %x", sha256.Sum256(r.TLS.PeerCertificates[0].Raw))}
	}
	return origin{network: true, who: "user " + c.who.Name}
}
