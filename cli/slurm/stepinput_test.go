package slurm

import (
	"bytes"
	"io"
	"net"
	"path/filepath"
	"testing"
)

// Ensure that the step of each attempt gets what srun reads from its first byte on, as long as that is kept, and that
// one which cannot have it fails.
func TestInputOfLaterAttempts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "input")
	socket, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	from, typed := io.Pipe()
	go (&feed{socket: socket}).give(from)
	input := func(want int) (io.ReadCloser, []byte) {
		t.Helper()
		in, bad := (&runFlags{input: readAll, socket: path}).newInput(1)
		if bad != nil {
			t.Fatal(bad)
		}
		text := make([]byte, want)
		if _, bad = io.ReadFull(in.from, text); bad != nil {
			t.Fatal(bad)
		}
		return in.from, text
	}
	write := func(text []byte) {
		if _, bad := typed.Write(text); bad != nil {
			t.Error(bad)
		}
	}
	first, _ := input(0)
	write([]byte("a"))
	if _, err = io.ReadFull(first, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	_ = first.Close()
	write([]byte("b")) // no one takes it
	second, text := input(2)
	if string(text) != "ab" {
		t.Errorf("the second attempt reads %q, want ab", text)
	}
	more := bytes.Repeat([]byte("c"), mostKept)
	go func() {
		write(more)
		_ = typed.Close()
	}()
	if text, err = io.ReadAll(second); err != nil || !bytes.Equal(text, more) {
		t.Errorf("the second attempt reads %d bytes more, %v, want %d", len(text), err, len(more))
	}
	if _, err = (&runFlags{input: readAll, socket: path}).newInput(1); err == nil {
		t.Error("the third attempt reads part of what is no longer kept")
	}
}
