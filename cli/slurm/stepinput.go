package slurm

import (
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/trainyard/trainyard/cli/client"
	"github.com/trainyard/trainyard/cli/term"
)

// Words for what tasks read.
const (
	readAll  = "all"
	readNone = "none"
)

// stepNumber counts the steps of an attempt, from 0 on, by a file in its run directory to which each adds a byte: where
// the byte ends up is the number, also of steps that start at the same time. Without such a folder each is step 0.
func stepNumber(runDir string) int64 {
	if runDir == "" {
		return 0
	}
	f, err := os.OpenFile(filepath.Join(runDir, "steps"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return 0
	}
	defer f.Close()
	if _, err = f.WriteString("\n"); err != nil {
		return 0
	}
	end, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0
	}
	return end - 1
}

// stepInput is what the tasks of a step read: files of their own, what another reads, or nothing.
type stepInput struct {
	files string        // pattern of their files; "" = none
	whole *os.File      // given to tasks as it is; nil = it is not
	from  io.ReadCloser // to be copied to tasks; nil = nothing is
	to    []*os.File    // our ends of the pipes that it is copied to
	only  int           // the task that alone reads; -1 = all do
}

// newInput finds out what n tasks read.
func (f *runFlags) newInput(n int) (in stepInput, err error) {
	if in.only, err = f.reader(n); err != nil || f.input == readNone {
		return in, err
	}
	switch {
	case in.only < 0 && f.input != readAll:
		in.files = f.input
	case f.socket != "":
		conn, bad := net.Dial("unix", f.socket)
		if bad != nil {
			return in, fmt.Errorf("srun: --input: %w: what srun reads is not to be had, as it has ended, its job "+
				"runs as another user, or an earlier attempt read more than is kept; want --input none or a file", bad)
		}
		in.from = conn
	case n == 1 || in.only >= 0 || readsNothing(os.Stdin):
		in.whole = os.Stdin
	default:
		in.from = os.Stdin
	}
	return in, nil
}

// reader is the task of n that alone reads what srun does; -1 = it is not one.
func (f *runFlags) reader(n int) (int, error) {
	task, err := strconv.Atoi(f.input)
	switch {
	case err != nil:
		return -1, nil
	case task < 0 || task >= n:
		return -1, term.Usagef("srun: --input %d, want a task from 0 to %d, all, none, or a file", task, n-1)
	}
	return task, nil
}

// stdin is what a task reads from; nil = nothing.
func (s *step) stdin(task int) (*os.File, error) {
	in := &s.input
	switch {
	case in.files != "":
		f, err := os.Open(s.path(in.files, task)) // each reads all of it
		if err != nil {
			return nil, fmt.Errorf("srun: --input: %w", err)
		}
		return f, nil
	case in.only >= 0 && in.only != task:
		return nil, nil
	case in.from == nil:
		return in.whole, nil
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("srun: %w", err)
	}
	in.to = append(in.to, write)
	return read, nil
}

// flow has what is read flow to the tasks from now on.
func (in *stepInput) flow() {
	if in.from != nil {
		go func() {
			spread(in.from, in.to)
			_ = in.from.Close()
		}()
	}
}

// spread copies all that is read to each of several, until no one is left that takes it, and closes them.
func spread(from io.Reader, to []*os.File) {
	block := make([]byte, 64<<10)
	for left := len(to); left > 0; {
		n, err := from.Read(block)
		for i, w := range to {
			if w == nil {
				continue
			}
			if _, bad := w.Write(block[:n]); bad != nil || err != nil {
				_ = w.Close()
				to[i], left = nil, left-1
			}
		}
	}
}

// readsNothing reports whether there is nothing to read from a file, or no terminal that is ours at the moment: whoever
// reads one from the background is stopped.
func readsNothing(f *os.File) bool {
	info, err := f.Stat()
	null, bad := os.Stat(os.DevNull)
	if err != nil || bad != nil || os.SameFile(info, null) {
		return true
	}
	group, none := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return none == nil && group != unix.Getpgrp()
}

// feed is what srun reads, for the step in a job of its own to fetch by a socket.
type feed struct {
	folder string
	socket net.Listener
}

// feed returns it, and the flags of the step for what its tasks read; nil where that is nothing. A job of another
// machine has no way to what is read here.
func (f *runFlags) feed(cmd *cobra.Command) (*feed, []string, error) {
	only, err := f.reader(max(f.tasks, f.perNode, 1))
	if err != nil || f.input == readNone {
		return nil, nil, err
	}
	if only < 0 && f.input != readAll {
		return nil, []string{"--input", f.input}, nil
	}
	in, is := cmd.InOrStdin().(*os.File)
	if !is || readsNothing(in) || new(client.Target).Away() {
		return nil, nil, nil
	}
	const most = 100 // bytes of the path of a socket
	root := os.TempDir()
	if len(root) > most-len("/srun-0123456789/input") {
		root = "/tmp"
	}
	folder, err := os.MkdirTemp(root, "srun-") // no other user may enter it
	if err != nil {
		return nil, nil, fmt.Errorf("srun: %w", err)
	}
	path := filepath.Join(folder, "input")
	l, err := net.Listen("unix", path)
	if err != nil {
		_ = os.RemoveAll(folder)
		return nil, nil, fmt.Errorf("srun: --input: %w, want --input none or a file", err)
	}
	fed := &feed{folder, l}
	if info, bad := in.Stat(); bad == nil && info.Mode().IsRegular() {
		from, _ := in.Seek(0, io.SeekCurrent) // of such a file it is no error
		go fed.each(func(conn net.Conn) { go copied(conn, io.NewSectionReader(in, from, math.MaxInt64-from)) })
	} else {
		go fed.give(in)
	}
	return fed, []string{"--input", f.input, "--input-socket", path}, nil
}

// each has something done with each connection, until there are no more.
func (f *feed) each(do func(net.Conn)) {
	for {
		conn, err := f.socket.Accept()
		if err != nil {
			return
		}
		do(conn)
	}
}

// copied gives a connection all of a file.
func copied(to net.Conn, from io.Reader) {
	_, _ = io.Copy(to, from) // whoever reads no more has ended
	_ = to.Close()
}

// mostKept is how many bytes of what cannot be read twice are kept for later attempts.
const mostKept = 1 << 20

// give copies what is read to the step that asked for it last, from the first byte on: that of a later attempt gets
// what earlier ones got. Once that is more than is kept, no other step is given it.
func (f *feed) give(from io.Reader) {
	conns, blocks := make(chan net.Conn), make(chan []byte)
	go func() {
		defer close(conns)
		f.each(func(conn net.Conn) { conns <- conn })
	}()
	start := sync.OnceFunc(func() { go read(from, blocks) })
	var kept []byte
	var to net.Conn
	var next <-chan []byte // nil = no one is given more
	for ended := false; conns != nil || next != nil; {
		var bad error
		select {
		case conn, open := <-conns:
			if !open {
				conns = nil
				continue
			}
			if to != nil {
				_ = to.Close()
			}
			start()
			to, next = conn, blocks
			_, bad = to.Write(kept)
		case block, open := <-next:
			ended, kept = !open, append(kept, block...)
			if _, bad = to.Write(block); bad == nil && len(kept) > mostKept {
				kept = nil
				_ = f.socket.Close()
			}
		}
		if bad != nil || ended { // a step that has ended leaves what comes to the next
			_ = to.Close()
			next = nil
		}
	}
}

// read reads blocks until there are no more.
func read(from io.Reader, blocks chan<- []byte) {
	defer close(blocks)
	for {
		block := make([]byte, 64<<10)
		n, err := from.Read(block)
		if n > 0 {
			blocks <- block[:n]
		}
		if err != nil {
			return
		}
	}
}

// close ends it; nil is none.
func (f *feed) close() {
	if f != nil {
		_ = f.socket.Close()
		_ = os.RemoveAll(f.folder)
	}
}
