package shim

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/driver/local/beneath"
)

// say is a line from a manager to a shim.
type say struct {
	Epoch int64  `json:"epoch"`          // of the manager
	Of    string `json:"of,omitempty"`   // job and attempt that it is about, see Order.name; "" = whoever hears it
	Stop  bool   `json:"stop,omitempty"` // end the attempt; else only hear of it
	// Requeued says of Stop that the job was requeued, as it often asks itself
	Requeued bool `json:"requeued,omitempty"`
	Ready    bool `json:"ready,omitempty"` // the job, asked to end, said to the manager that all is saved
	// Times hold from now on in place of those of the order.
	Times *task.Times `json:"times,omitempty"`
}

// report is a line from a shim to a manager.
type report struct {
	Up      *Alive `json:"up,omitempty"`      // the job's process runs
	Over    bool   `json:"over,omitempty"`    // over.json is there
	Refused string `json:"refused,omitempty"` // an order of a manager that is none any more
}

// socket returns an address of the control socket that is short wherever the run directory is: the address of a socket
// has 108 bytes at most. It is valid while the file is open. It leads to what is in the folder, never to another one's
// socket by a link.
func (r RunDir) socket() (address string, held *os.File, err error) {
	state, path := r.inState()
	held, err = beneath.Handle(state, filepath.Join(path, control))
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d", held.Fd()), held, nil
}

// control is the name of the control socket.
const control = "control"

func (s *shim) listen() error {
	state, path := s.dir.inState()
	folder, err := beneath.Handle(state, path)
	if err != nil {
		return err
	}
	defer folder.Close()
	l, err := net.Listen("unix", fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), control))
	if err != nil {
		return err
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false) // the address is not valid any more by then
	s.listener = l
	go s.accept()
	return nil
}

// How long a shim waits after it could not accept a connection, such as for want of files.
const (
	firstRest = 10 * time.Millisecond
	lastRest  = time.Second
)

// accept serves whoever comes until the attempt is over.
func (s *shim) accept() {
	rest := firstRest
	for {
		conn, err := s.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			if rest == firstRest { // once for many
				slog.Error("no connection", "error", err)
			}
			time.Sleep(rest)
			rest = min(2*rest, lastRest)
		default:
			rest = firstRest
			c := &client{Conn: conn}
			s.admit(c)
			s.clients.Go(func() { s.serve(c) })
		}
	}
}

// maxClients is how many may be connected at a time: one manager, and whoever it takes the place of.
const maxClients = 64

// client is a connection of a manager, or of someone who has given no order yet.
type client struct {
	net.Conn
	heard bool // it gave an order that was obeyed
}

// admit makes room for a client: of too many the one that was silent for longest is hung up on, managers last. A
// manager comes again.
func (s *shim) admit(c *client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) >= maxClients {
		i := max(0, slices.IndexFunc(s.open, func(c *client) bool { return !c.heard }))
		_ = s.open[i].Close()
		s.open = slices.Delete(s.open, i, i+1)
	}
	s.open = append(s.open, c)
}

// heard notes that a client that is there still is a manager, and puts it last.
func (s *shim) heard(c *client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.open, c); i >= 0 {
		c.heard = true
		s.open = append(slices.Delete(s.open, i, i+1), c)
	}
}

// leave is for a client that has hung up.
func (s *shim) leave(c *client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = slices.DeleteFunc(s.open, func(x *client) bool { return x == c })
}

// serve hears the orders of one manager and reports to it what happens, once it has said who it is, until the attempt
// is over.
func (s *shim) serve(c *client) {
	defer s.leave(c)
	defer c.Close()
	known, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		s.hear(c, sync.OnceFunc(func() { close(known) }))
	}()
	s.inform(c, known, gone)
}

// hear obeys the lines of a manager until it hangs up or turns out to be an old one. known is called after each that is
// obeyed.
func (s *shim) hear(c *client, known func()) {
	lines := json.NewDecoder(bufio.NewReader(io.LimitReader(c, 1<<20)))
	for {
		var order say
		if err := lines.Decode(&order); err != nil {
			return
		}
		if refused := s.obey(order); refused != "" {
			slog.Warn("refused", "why", refused)
			_ = json.NewEncoder(c).Encode(report{Refused: refused})
			return
		}
		s.heard(c)
		known()
	}
}

// obey carries out an order, or says why not. Which manager gives orders is what the managers' own file says: whoever
// reaches the socket may claim any number, and that is not remembered.
func (s *shim) obey(order say) (refused string) {
	now, err := s.order.State.Epoch()
	if err != nil {
		slog.Error("no epoch", "error", err) // what was read before holds
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && now > 0 {
		s.epoch = now
	}
	if order.Epoch < s.epoch {
		return fmt.Sprintf("order of epoch %d, want %d or later", order.Epoch, s.epoch)
	}
	if own := s.order.name(); order.Of != "" && order.Of != own {
		return fmt.Sprintf("order about %s, this is %s", short(order.Of), own)
	}
	s.ready = s.ready || order.Ready
	if order.Times != nil && order.Times.Valid() { // no manager says others
		s.times = order.Times.Of(s.order.Ran)
		s.change()
	}
	if order.Stop {
		select {
		case <-s.stop:
		default:
			s.requeued = order.Requeued
			close(s.stop)
		}
	}
	return ""
}

// wasRequeued reports whether the attempt is to end because its job was requeued.
func (s *shim) wasRequeued() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requeued
}

// saidReady reports whether a manager has passed on that the job says that all is saved.
func (s *shim) saidReady() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ready
}

// inform reports to a manager, once it is known, when the job is up, and to anybody when it is over.
func (s *shim) inform(conn io.Writer, known, gone <-chan struct{}) {
	out := json.NewEncoder(conn)
	for up := false; ; {
		s.mu.Lock()
		alive, over, changed := s.alive, s.over, s.changed
		s.mu.Unlock()
		if alive != nil && known == nil && !up {
			up = true
			if out.Encode(report{Up: alive}) != nil { // it has hung up, and what it said before that is heard
				<-gone
				return
			}
		}
		if over {
			_ = out.Encode(report{Over: true})
			return
		}
		select {
		case <-changed:
		case <-known:
			known = nil
		case <-gone:
			return
		}
	}
}

// announce changes what managers hear.
func (s *shim) announce(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	s.change()
}

// change wakes those who wait for a change; s.mu is held.
func (s *shim) change() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// timing returns the times that hold now, and a channel that is closed when something changes.
func (s *shim) timing() (task.Times, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.times, s.changed
}

// Conn is a manager's connection to a shim.
type Conn struct {
	conn  net.Conn
	epoch int64
	of    string
}

// Dial connects to the shim of a run directory; fs.ErrNotExist or ECONNREFUSED if none listens. What listens need be no
// shim, as the job can write to the folder: no promise is drawn from what it says but that of its lock, see
// State.Start.
func Dial(dir RunDir, epoch int64) (*Conn, error) {
	address, held, err := dir.socket()
	if err != nil {
		return nil, err
	}
	defer held.Close()
	conn, err := net.DialTimeout("unix", address, 5*time.Second)
	if err != nil {
		return nil, err
	}
	c := &Conn{conn, epoch, filepath.Join(filepath.Base(filepath.Dir(string(dir))), filepath.Base(string(dir)))}
	if err := c.send(say{}); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return c, nil
}

// Stop has the attempt ended: SIGTERM, the grace, SIGKILL. Asked again, it says nothing new.
func (c *Conn) Stop() error { return c.send(say{Stop: true}) }

// Requeue is Stop for a job that was requeued while it ran.
func (c *Conn) Requeue() error { return c.send(say{Stop: true, Requeued: true}) }

// Ready passes on that the job, which was asked to end, says that all is saved.
func (c *Conn) Ready() error { return c.send(say{Ready: true}) }

// Retime has the attempt go by other times from now on.
func (c *Conn) Retime(t task.Times) error { return c.send(say{Times: &t}) }

// Close hangs up; the attempt goes on.
func (c *Conn) Close() error { return c.conn.Close() }

func (c *Conn) send(s say) error {
	s.Epoch, s.Of = c.epoch, c.of
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	_, err = c.conn.Write(append(b, '\n'))
	return err
}

// ErrFenced says that a later manager gives orders.
var ErrFenced = errors.New("a later manager gives orders now")

// maxHeard is how many bytes a shim has to say at most, by far.
const maxHeard = 64 << 10

// Watch calls up once the job's process runs and returns when the shim hangs up: nil if it said that over.json is
// there, ErrFenced if it refuses orders, or io.EOF if it died.
func (c *Conn) Watch(up func(*Alive)) error {
	lines := json.NewDecoder(io.LimitReader(c.conn, maxHeard))
	for {
		var t report
		if err := lines.Decode(&t); err != nil {
			return io.EOF
		}
		switch {
		case t.Refused != "":
			return fmt.Errorf("%w: %s", ErrFenced, short(t.Refused))
		case t.Up != nil:
			up(t.Up)
		case t.Over:
			return nil
		}
	}
}
