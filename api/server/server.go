package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/manager"
	"github.com/trainyard/trainyard/manager/access"
	"github.com/trainyard/trainyard/sched"
)

// Options say what a Server serves, and to whom.
type Options struct {
	Manager *manager.Manager
	Meter   *Meter // among the sinks of the Manager
	Version string // of this program
	Unit    string // what jobs hold: GPU or slot
	Log     *slog.Logger
	// Group may use the socket as well, each of its users as User; nil = the owner of the folder and root alone.
	Group *int
	// Network is where the server listens on the network, as in ":7070"; "" = nowhere. It takes a certificate, and
	// somebody who may ask: see Tokens.
	Network string
	Cert    string // file of the certificate, in PEM
	Key     string // file of its key
}

// Server answers requests about the jobs of a Manager while that runs.
type Server struct {
	o       Options
	tokens  *access.Tokens
	owner   uint32 // of the folder
	origin  time.Time
	began   time.Time
	docs    huma.API
	guard   *guard
	parsing chan struct{} // a large job file is read by one at a time: its tree takes much memory
	// thinking has those who look into the future one after the other, and explaining those who decide the past again:
	// it takes a processor and memory, and the past takes long.
	thinking, explaining chan struct{}
	metrics              http.Handler
}

// New returns a server of the manager in o. It serves nobody before Listen.
func New(o Options) (*Server, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	dir := o.Manager.Dir()
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	origin, err := time.Parse(time.RFC3339Nano, o.Manager.Header().Origin)
	if err != nil {
		return nil, fmt.Errorf("api: origin of the log: %w", err)
	}
	s := &Server{o: o, tokens: access.OpenTokens(dir), owner: info.Sys().(*syscall.Stat_t).Uid, origin: origin, began: time.Now(),
		parsing: make(chan struct{}, 1), thinking: make(chan struct{}, 1), explaining: make(chan struct{}, 1)}
	mux := http.NewServeMux()
	s.guard = &guard{mux: mux, rules: rules, local: s.local, tokens: s.tokens, find: s.find, sole: s.sole, owner: s.ownerOf,
		streams: make(chan struct{}, maxStreams)}
	s.docs = humago.New(mux, huma.Config{OpenAPI: describe(o.Version), Formats: huma.DefaultFormats, DefaultFormat: "application/json",
		RejectUnknownQueryParameters: true})
	s.routes()
	s.metrics = s.newMetrics()
	return s, nil
}

// local says who is at the other end of the unix socket, by the user that the kernel names.
func (s *Server) local(uid uint32) api.Who {
	switch {
	case uid == 0 || uid == s.owner:
		return api.Who{Name: access.UserName(uid), Role: api.Admin}
	case s.o.Group != nil: // who reaches the socket is of the group
		return api.Who{Name: access.UserName(uid), Role: api.User}
	}
	return api.Who{}
}

// ServeHTTP answers one request. What it says of who asks counts only on connections that Listen made.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.guard.ServeHTTP(w, r) }

// Listen serves on the socket of the state folder and, if that is asked for, on the network, until stop is called. The
// manager must have the folder.
func (s *Server) Listen() (stop func(), err error) {
	l, done, err := s.listenSocket()
	if err != nil {
		return nil, fmt.Errorf("api: control socket: %w", err)
	}
	listeners := []net.Listener{l}
	if s.o.Network != "" {
		n, err := s.listenNetwork()
		if err != nil {
			return nil, errors.Join(fmt.Errorf("api: %s: %w", s.o.Network, err), l.Close(), done())
		}
		listeners = append(listeners, n)
	}
	ctx, cancel := context.WithCancel(context.Background())
	server := &http.Server{Handler: s, ConnContext: access.WithPeer, ReadHeaderTimeout: api.Patience, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: maxHeaders, DisableGeneralOptionsHandler: true, BaseContext: func(net.Listener) context.Context { return ctx },
		Protocols: new(http.Protocols), ErrorLog: log.New(discard{}, "", 0)}
	server.Protocols.SetHTTP1(true)
	var serving sync.WaitGroup
	for _, l := range listeners {
		serving.Go(func() {
			if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				s.o.Log.Error("nobody is answered any more", "address", l.Addr(), "error", err)
			}
		})
	}
	return func() {
		cancel() // streams
		end, late := context.WithTimeout(context.Background(), time.Second)
		defer late()
		_ = server.Shutdown(end)
		_ = server.Close()
		serving.Wait()
		_ = done()
	}, nil
}

// discard takes what the server says of connections that break: it is the affair of those who made them.
type discard struct{}

// Write takes b as written.
func (discard) Write(b []byte) (int, error) { return len(b), nil }

// Modes of the socket and the folder it is in.
const (
	alone      = 0o600
	withGroup  = 0o660
	folderMode = 0o710 // whoever may pass sees nothing
)

// listenSocket listens on the socket of the folder.
func (s *Server) listenSocket() (net.Listener, func() error, error) {
	dir := s.o.Manager.Dir()
	folder, address, err := api.Socket(dir)
	if err != nil {
		return nil, nil, err
	}
	if err = removeOld(address, dir); err != nil {
		return nil, nil, errors.Join(err, folder.Close())
	}
	mode := os.FileMode(alone)
	l, err := net.Listen("unix", address) // in a folder that is closed to others so far
	if err == nil && s.o.Group != nil {
		mode = withGroup
		err = errors.Join(os.Chown(address, -1, *s.o.Group), os.Chown(dir, -1, *s.o.Group), os.Chmod(dir, folderMode))
	}
	if err == nil {
		err = os.Chmod(address, mode)
	}
	if err != nil {
		return nil, nil, errors.Join(err, folder.Close())
	}
	return l, folder.Close, nil
}

// removeOld removes the socket of a manager that died, at an address that is in the folder dir: that is ours.
func removeOld(address, dir string) error {
	err := os.Remove(address)
	if err == nil || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if at := (*os.PathError)(nil); errors.As(err, &at) {
		err = at.Err
	}
	return fmt.Errorf("%s: the one of an earlier manager cannot be removed: %w; want a folder that we may write in", filepath.Join(dir, filepath.Base(address)), err)
}

// listenNetwork listens on the network, where nobody is answered without an identity, on this machine neither.
func (s *Server) listenNetwork() (net.Listener, error) {
	list, err := s.tokens.List()
	switch {
	case err != nil:
		return nil, err
	case s.o.Cert == "" || s.o.Key == "":
		return nil, fmt.Errorf("%w without a certificate and its key", api.ErrRefused)
	case len(list) == 0:
		return nil, fmt.Errorf("%w: nobody could ask: make a token first", api.ErrRefused)
	}
	pair, err := tls.LoadX509KeyPair(s.o.Cert, s.o.Key)
	if err != nil {
		return nil, err
	}
	s.guard.cert = pair.Leaf
	l, err := net.Listen("tcp", s.o.Network)
	if err != nil {
		return nil, err
	}
	return tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13,
		ClientAuth: tls.RequestClientCert, NextProtos: []string{"http/1.1"}}), nil
}

// find returns the job that a text names: by number, or else the latest of that name.
func (s *Server) find(text string) (sched.JobID, error) {
	board := s.o.Manager.Board()
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		if _, known, _ := board.Row(sched.JobID(n)); known {
			return sched.JobID(n), nil
		}
	}
	if id, ok := board.Find(text); ok {
		return id, nil
	}
	if s.o.Manager.Expects(text) {
		return sched.None, fmt.Errorf("job %q: %w", text, api.ErrEarly)
	}
	return sched.None, fmt.Errorf("job %q: %w", text, api.ErrNoJob)
}

// sole refuses a name that other jobs have that are not done, of those that are the caller's to change: what is done to
// one is not to be meant for another.
func (s *Server) sole(ctx context.Context, c *caller, text string) error {
	id := c.job
	if text == strconv.Itoa(int(id)) {
		return nil
	}
	others := s.o.Manager.Board().Others(id)
	if len(others) > 0 && c.who.Role < api.Admin {
		err := s.o.Manager.Look(ctx, func(v *sched.View) {
			others = slices.DeleteFunc(others, func(o sched.JobID) bool { return v.Jobs[o].Spec.User != c.who.Name })
		})
		if err != nil {
			return err
		}
	}
	if len(others) == 0 {
		return nil
	}
	row, _, _ := s.o.Manager.Board().Row(id)
	newest := ""
	if row.State == sched.Done {
		newest = fmt.Sprintf(" (%v)", row.Outcome)
	}
	return fmt.Errorf("%w: %q may mean job %d%s or %s, want a number", api.ErrAmbiguous, text, id, newest, numbers(others))
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
	err = s.o.Manager.Look(ctx, func(v *sched.View) { name = v.Jobs[id].Spec.User })
	return name, err
}
