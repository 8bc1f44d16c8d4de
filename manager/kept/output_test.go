package kept

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/trainyard/trainyard/api/site"
)

// Ensure that an output that is made empty is shown from its new start, that one that grows is shown as it grows, and
// that no character is cut.
func TestGrowingOutput(t *testing.T) {
	dir := t.TempDir()
	path := outputPath(dir, 0, 1)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	row := site.Standing{Attempts: 1}
	var got bytes.Buffer
	step := 0
	steps := []struct {
		write string
		empty bool
	}{{write: "a\xe2\x82"}, {write: "\xac\n"}, {write: "x\xff"}, {write: "new\n", empty: true}, {write: "\xe2"}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	now := make(chan struct{})
	close(now)
	r := site.Reading{Of: Outputs(dir), From: site.Point{Attempt: 1}, Follow: true, Lines: -1}
	quiet := 0
	r.Current = func() (site.Standing, <-chan struct{}) {
		switch quiet++; {
		case quiet%4 != 0:
		case step < len(steps):
			s := steps[step]
			flags := os.O_WRONLY | os.O_APPEND | os.O_CREATE
			if step++; s.empty {
				flags = os.O_WRONLY | os.O_TRUNC
			}
			f, err := os.OpenFile(path, flags, 0o600)
			if err == nil {
				_, err = f.WriteString(s.write)
			}
			if err = errors.Join(err, f.Close()); err != nil {
				t.Error(err)
			}
		default:
			row = site.Standing{Done: true, Ended: true, Attempts: 1}
		}
		return row, now
	}
	r.Piece = func(_ site.Point, text []byte) error { got.WriteString("[" + string(text) + "]"); return nil }
	ended := false
	r.End = func(site.Point) error { ended = true; return nil }
	if err := r.Run(ctx); err != nil || !ended {
		t.Fatal(err, ended)
	}
	if want := "[a][€\n][x\xff][new\n][\xe2]"; got.String() != want {
		t.Errorf("%q, want %q", got.String(), want)
	}
}
