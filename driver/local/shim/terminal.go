package shim

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/trainyard/trainyard/driver/local/beneath"
)

// Of the terminal of an attempt.
const (
	terminalSocket = "terminal"
	keptScreen     = 8 << 10         // bytes of what was written last, for who attaches
	slowest        = 5 * time.Second // that who is attached may take to read, else he is hung up on
	mostTyped      = 4 << 10         // bytes of one frame
	lastWords      = time.Second     // for what was written before the end
	MostAttached   = 16              // connections at a time
)

// Frames of who is attached: a kind, the length of what follows, 2 bytes, and that.
const (
	frameKeys = 'k' // what was typed
	frameSize = 's' // rows and columns, 2 bytes each
	frameHead = 3
)

// terminal is that of an attempt. The shim has it, so that it outlives those who are attached, and managers.
type terminal struct {
	ours     *os.File
	idle     time.Duration // after so long without a key and without a word it ends
	listener net.Listener
	copied   chan struct{} // closed when nothing more is written
	ended    chan struct{} // closed when it was idle for too long

	mu       sync.Mutex
	attached []net.Conn
	screen   []byte
	busy     time.Time // when a key was typed, or something was written
	warned   bool
}

// newTerminal makes the terminal that an order wants, and returns the end of the job; nil = it wants none.
func (s *shim) newTerminal() (*terminal, *os.File, error) {
	if s.order.Terminal == 0 {
		return nil, nil, nil
	}
	ours, theirs, err := openTerminal()
	if err != nil {
		return nil, nil, err
	}
	t := &terminal{ours: ours, idle: s.order.Terminal, copied: make(chan struct{}), ended: make(chan struct{}),
		busy: time.Now()}
	state, path := s.dir.inState()
	folder, err := beneath.Handle(state, path)
	if err == nil {
		defer folder.Close()
		t.listener, err = net.Listen("unix", fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), terminalSocket))
	}
	if err != nil {
		return nil, nil, errors.Join(err, ours.Close(), theirs.Close())
	}
	t.listener.(*net.UnixListener).SetUnlinkOnClose(false) // the address is not valid any more by then
	return t, theirs, nil
}

// start copies what is written to out and to those who are attached, whom it lets in, until close.
func (t *terminal) start(out io.Writer) {
	go t.copy(out)
	go t.admit()
	go t.watch()
}

func (t *terminal) copy(out io.Writer) {
	defer close(t.copied)
	b := make([]byte, mostTyped)
	for {
		n, err := t.ours.Read(b)
		if n > 0 {
			if _, failed := out.Write(b[:n]); failed != nil {
				slog.Warn("the output of the terminal is not kept", "error", failed)
			}
			t.show(b[:n], true)
		}
		if err != nil { // no process has the other end
			return
		}
	}
}

// show writes to all who are attached. By words the job is busy; those of ours say nothing of it.
func (t *terminal) show(b []byte, words bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if words {
		t.busy, t.warned = time.Now(), false
	}
	t.screen = append(t.screen, b...)
	t.screen = t.screen[max(len(t.screen)-keptScreen, 0):]
	for i := 0; i < len(t.attached); {
		if send(t.attached[i], b) {
			i++
			continue
		}
		_ = t.attached[i].Close()
		t.attached = append(t.attached[:i], t.attached[i+1:]...)
	}
}

// send reports whether all was taken in time.
func send(c net.Conn, b []byte) bool {
	_ = c.SetWriteDeadline(time.Now().Add(slowest))
	_, err := c.Write(b)
	return err == nil
}

func (t *terminal) admit() {
	for {
		c, err := t.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(firstRest)
			continue
		}
		t.mu.Lock()
		switch {
		case len(t.attached) >= MostAttached:
			_ = send(c, []byte(full))
			_ = c.Close()
		case send(c, t.screen):
			t.attached = append(t.attached, c)
			go t.hear(c)
		default:
			_ = c.Close()
		}
		t.mu.Unlock()
	}
}

// hear types what one who is attached types, until he leaves.
func (t *terminal) hear(c net.Conn) {
	defer t.release(c)
	head, body := make([]byte, frameHead), make([]byte, mostTyped)
	for {
		if _, err := io.ReadFull(c, head); err != nil {
			return
		}
		n := int(binary.BigEndian.Uint16(head[1:]))
		if n > len(body) {
			return
		}
		if _, err := io.ReadFull(c, body[:n]); err != nil {
			return
		}
		switch {
		case head[0] == frameKeys:
			t.mu.Lock()
			t.busy, t.warned = time.Now(), false
			t.mu.Unlock()
			if _, err := t.ours.Write(body[:n]); err != nil {
				return
			}
		case head[0] == frameSize && n == 4:
			_ = sizeTerminal(t.ours, binary.BigEndian.Uint16(body), binary.BigEndian.Uint16(body[2:]))
		}
	}
}

// release closes a connection, whose place another may have then.
func (t *terminal) release(c net.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.attached = slices.DeleteFunc(t.attached, func(other net.Conn) bool { return other == c })
	_ = c.Close()
}

// warnBefore is how long before the end for want of keys those who are attached are warned.
const warnBefore = 5 * time.Minute

// watch notes when the terminal was idle for too long. Before that it warns.
func (t *terminal) watch() {
	warn := min(warnBefore, t.idle/2)
	for {
		t.mu.Lock()
		left, warned := time.Until(t.busy.Add(t.idle)), t.warned
		t.warned = warned || left <= warn
		t.mu.Unlock()
		next := left
		switch {
		case left <= 0:
			close(t.ended)
			return
		case left <= warn && !warned:
			t.show(fmt.Appendf(nil, "\r\n[trainyard: no key for %v; in %v this ends]\r\n",
				(t.idle-left).Round(time.Second), left.Round(time.Second)), false)
		case left > warn:
			next = left - warn
		}
		select {
		case <-t.copied:
			return
		case <-time.After(next):
		}
	}
}

// over returns when the terminal was idle for too long; of none never.
func (t *terminal) over() <-chan struct{} {
	if t == nil {
		return nil
	}
	return t.ended
}

// close hangs up on all who are attached, once what was written before has been shown.
func (t *terminal) close() {
	if t == nil {
		return
	}
	select {
	case <-t.copied:
	case <-time.After(lastWords): // a process that is about to be killed has it open
	}
	_ = t.listener.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.attached {
		_ = c.Close()
	}
	t.attached = nil
	_ = t.ours.Close()
}

// full is all that a connection is sent that is one too many.
const full = "\x00trainyard: the terminal has as many connections as it may have\r\n"

// ErrFull says that MostAttached connections are open already.
var ErrFull = errors.New("terminal is full")

// Attached is a connection to the terminal of an attempt.
type Attached struct {
	net.Conn
	admitted bool // something was read
}

// Read reads what the terminal shows. The error is ErrFull if the connection was one too many.
func (a *Attached) Read(b []byte) (int, error) {
	n, err := a.Conn.Read(b)
	if !a.admitted && string(b[:n]) == full {
		return 0, ErrFull
	}
	a.admitted = a.admitted || n > 0
	return n, err
}

// Attach connects to the terminal of the attempt of a run directory; fs.ErrNotExist if it has none.
func Attach(dir RunDir) (*Attached, error) {
	state, path := dir.inState()
	held, err := beneath.Handle(state, filepath.Join(path, terminalSocket))
	if err != nil {
		return nil, err
	}
	defer held.Close()
	c, err := net.DialTimeout("unix", fmt.Sprintf("/proc/self/fd/%d", held.Fd()), slowest)
	if err != nil {
		return nil, err
	}
	return &Attached{Conn: c}, nil
}

// Type has keys typed.
func (a *Attached) Type(keys []byte) error {
	for len(keys) > 0 {
		n := min(len(keys), mostTyped)
		if err := a.frame(frameKeys, keys[:n]); err != nil {
			return err
		}
		keys = keys[n:]
	}
	return nil
}

// Size says how large the terminal of the user is, in characters.
func (a *Attached) Size(rows, columns int) error {
	b := binary.BigEndian.AppendUint16(nil, uint16(rows))
	return a.frame(frameSize, binary.BigEndian.AppendUint16(b, uint16(columns)))
}

func (a *Attached) frame(kind byte, body []byte) error {
	b := append(binary.BigEndian.AppendUint16([]byte{kind}, uint16(len(body))), body...)
	_, err := a.Write(b)
	return err
}

// connect has a command use a terminal instead of files, where there is one.
func (t *terminal) connect(cmd *exec.Cmd, theirs *os.File) {
	if t == nil {
		return
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, theirs
	cmd.SysProcAttr = new(syscall.SysProcAttr)
	controlling(cmd.SysProcAttr)
}
