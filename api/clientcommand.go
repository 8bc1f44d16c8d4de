package api

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
)

// DialCommand returns a client whose connections are runs of a command: what it reads is what the client sends, what it
// writes is what the client receives, as `ssh lab trainyard connect`. No shell runs it. name is what errors call the
// host. A command that is not there, that ends before it answers, or that writes something that is not HTTP is
// ErrNoManager, with the last line that it wrote to its stderr.
func DialCommand(name string, command []string) *Client {
	c := &Client{base: "http://" + HostName, name: name}
	c.via(&http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return runCommand(command)
	}})
	return c
}

// commandConn is a run of a command as a connection.
type commandConn struct {
	cmd      *exec.Cmd
	to, from *os.File // pipes; their ends here, which know deadlines
	said     *lastWords
	ended    chan struct{} // closed once the command has ended
	answers  bool          // what it wrote starts as HTTP does
	once     sync.Once
}

var _ net.Conn = (*commandConn)(nil)

// runCommand starts the command.
func runCommand(command []string) (net.Conn, error) {
	in, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	from, out, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, to.Close())
	}
	defer out.Close()
	c := &commandConn{cmd: exec.Command(command[0], command[1:]...), to: to, from: from, said: new(lastWords),
		ended: make(chan struct{})}
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = in, out, c.said
	c.cmd.WaitDelay = endGrace // a child of the command may keep its stderr open
	if err := c.cmd.Start(); err != nil {
		never := errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)
		failed := &commandError{why: err.Error(), unsent: true, lasting: never}
		return nil, errors.Join(failed, to.Close(), from.Close())
	}
	go func() {
		_ = c.cmd.Wait()
		close(c.ended)
	}()
	return c, nil
}

// commandError says why a command gives no connection.
type commandError struct {
	why     string
	unsent  bool // by its exit code it has passed nothing on
	lasting bool // there is no such program: it fails the next time too
}

// Error returns why.
func (e *commandError) Error() string { return e.why }

// Read reads what the command writes. Where it ends, the error has what it said last; what does not start as HTTP does
// is an error.
func (c *commandConn) Read(b []byte) (int, error) {
	n, err := c.from.Read(b)
	if n > 0 && !c.answers {
		if head := b[:min(n, len(protocol))]; !strings.HasPrefix(protocol, string(head)) {
			line, _, _ := strings.Cut(string(b[:min(n, maxNoise)]), "\n")
			return 0, &commandError{why: "the command writes something that is not HTTP: " + Printable(line)}
		}
		c.answers = true
	}
	return n, c.because(n == 0, err)
}

// protocol starts every answer, and maxNoise is how many bytes of something else are shown.
const (
	protocol = "HTTP/"
	maxNoise = 200
)

// because returns, in place of an error that broke the connection, what the command said last.
func (c *commandConn) because(broke bool, err error) error {
	if !broke || err == nil || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, os.ErrClosed) {
		return err
	}
	if said := c.lastSaid(); said != "" {
		return &commandError{why: "the command ended: " + said, unsent: c.passedNothing()}
	}
	return err
}

// lastSaid returns the last line that a command which has closed its output wrote to its stderr; "" if it wrote none,
// or goes on.
func (c *commandConn) lastSaid() string {
	select {
	case <-c.ended:
	case <-time.After(endGrace):
		return ""
	}
	if line := c.said.line(); line != "" {
		return line
	}
	if state := c.cmd.ProcessState; state != nil && !state.Success() {
		return state.String()
	}
	return ""
}

// passedNothing reports whether the exit code of a command that has ended says that no one heard what it was given: 6
// is that of `trainyard connect` where no manager is, 126 and 127 are those of shells that have nothing to run.
func (c *commandConn) passedNothing() bool {
	state := c.cmd.ProcessState
	return state != nil && slices.Contains([]int{6, 126, 127}, state.ExitCode())
}

// Write sends to the command.
func (c *commandConn) Write(b []byte) (int, error) {
	n, err := c.to.Write(b)
	return n, c.because(err != nil, err)
}

// endGrace is how long a command whose connection is closed has to end before it is killed.
const endGrace = time.Second

// Close ends the connection. The command, whose input ends, is killed if it does not end soon.
func (c *commandConn) Close() error {
	err := errors.Join(c.to.Close(), c.from.Close())
	c.once.Do(func() {
		go func() {
			select {
			case <-c.ended:
			case <-time.After(endGrace):
				_ = c.cmd.Process.Kill()
			}
		}()
	})
	return err
}

// LocalAddr names the end: a command, without an address.
func (c *commandConn) LocalAddr() net.Addr { return commandAddr{} }

// RemoteAddr is alike.
func (c *commandConn) RemoteAddr() net.Addr { return commandAddr{} }

type commandAddr struct{}

// Network is the kind of connection.
func (commandAddr) Network() string { return "command" }

// String is the same: a command has no address.
func (commandAddr) String() string { return "command" }

// SetDeadline sets that of both pipes.
func (c *commandConn) SetDeadline(t time.Time) error {
	return errors.Join(c.to.SetDeadline(t), c.from.SetDeadline(t))
}

// SetReadDeadline is that of the pipe that is read.
func (c *commandConn) SetReadDeadline(t time.Time) error { return c.from.SetReadDeadline(t) }

// SetWriteDeadline is that of the pipe that is written.
func (c *commandConn) SetWriteDeadline(t time.Time) error { return c.to.SetWriteDeadline(t) }

// lastWords keeps the end of what is written to it.
type lastWords struct {
	mu   sync.Mutex
	text []byte
}

// maxWords is how many bytes are kept.
const maxWords = 4 << 10

// Write keeps the last maxWords bytes. It never fails.
func (w *lastWords) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, b...)
	if over := len(w.text) - maxWords; over > 0 {
		w.text = w.text[over:]
	}
	return len(b), nil
}

// line returns the last line that is not empty.
func (w *lastWords) line() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(string(w.text)), "\n")
	return Printable(fmt.Sprint(lines[len(lines)-1]))
}
