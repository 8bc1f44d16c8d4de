package logs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

var origin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// log is a log of lines with their times, as a kubelet has it.
func log(r *rand.Rand, lines int) (stamped, plain string) {
	var b, p strings.Builder
	at := origin
	for i := range lines {
		if r.IntN(3) > 0 { // some have the same time
			at = at.Add(time.Duration(r.IntN(1500)) * time.Millisecond)
		}
		text := fmt.Sprintf("step %d %s", i, strings.Repeat("x", r.IntN(8)*r.IntN(8)*r.IntN(700)))
		if r.IntN(4) == 0 {
			text = strings.ReplaceAll(text, "x", "\r")
		}
		fmt.Fprintf(&b, "%s %s\n", at.Format(time.RFC3339Nano), text)
		fmt.Fprintf(&p, "%s\n", text)
	}
	return b.String(), p.String()
}

// since is what a kubelet sends of a log from a second on.
func since(log string, at time.Time) string {
	for rest := log; rest != ""; {
		line, after, _ := strings.Cut(rest, "\n")
		if t, _, ok := stamped([]byte(line)); ok && !t.Before(at.Truncate(time.Second)) {
			return rest
		}
		rest = after
	}
	return ""
}

// Ensure that all of a log is reported once and in order, wherever connections break: in a line, in its time, between
// lines of one time.
func TestNothingIsLostOrTwice(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		all, want := log(r, 1+r.IntN(40))
		var c cursor
		var got strings.Builder
		last := time.Time{}
		text := func(at time.Time, piece []byte) {
			if at.Before(last) {
				t.Errorf("seed %d: %v after %v", seed, at, last)
			}
			last = at
			got.Write(piece)
		}
		for written := 0; written < len(all); { // more is written, and the connection breaks anywhere in what there is
			written = min(len(all), written+r.IntN(len(all)/3+2))
			sent := all[:written]
			if !c.at.IsZero() {
				sent = since(sent, c.at)
			}
			cut := r.IntN(len(sent) + 1)
			broken := errors.New("broken")
			in := io.MultiReader(strings.NewReader(sent[:cut]), iotest.ErrReader(broken))
			if err := c.read(in, text); !errors.Is(err, broken) {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		if err := c.read(strings.NewReader(since(all, c.at)), text); err != nil {
			t.Fatal(err)
		}
		if got.String() != want {
			t.Fatalf("seed %d: reported\n%.200q\nwant\n%.200q", seed, got.String(), want)
		}
	}
}

// Ensure that lines whose times fall, as those of a node whose clock is put back do, are reported, and such without a
// time as well.
func TestOddTimes(t *testing.T) {
	var c cursor
	var got []string
	text := func(at time.Time, piece []byte) { got = append(got, at.Format("05 ")+string(piece)) }
	in := "2026-01-01T00:00:30Z a\n2026-01-01T00:00:10Z b\nno time\n\n2026-01-01T00:00:11Z c"
	if err := c.read(strings.NewReader(in), text); err != nil {
		t.Fatal(err)
	}
	if want := []string{"30 a\n", "10 b\n", "10 no time\n", "10 \n", "11 c"}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("reported %q, want %q", got, want)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("2026-01-01T00:00:30Z a\n2026-01-01T00:00:30Z b\nno time\n"), 20)
	f.Add([]byte("2026-01-01T00:00:30Z a"), 3)
	f.Add([]byte("2026-01-01T00:00:30Z a\n2026-01-01T00:00:10Z b"), 25)
	f.Fuzz(func(t *testing.T, log []byte, cut int) {
		if cut < 0 || cut > len(log) {
			return
		}
		rises, last := true, time.Time{}
		var once, thrice bytes.Buffer
		var all, c cursor
		if err := all.read(bytes.NewReader(log), func(at time.Time, piece []byte) {
			once.Write(piece)
			rises, last = rises && !at.Before(last), at
		}); err != nil {
			t.Fatal(err)
		}
		for _, in := range [][]byte{log[:cut], log, log} {
			if err := c.read(bytes.NewReader(in), func(_ time.Time, piece []byte) { thrice.Write(piece) }); err != nil {
				t.Fatal(err)
			}
		}
		if rises && !bytes.Equal(once.Bytes(), thrice.Bytes()) {
			t.Errorf("reported %q, want %q", thrice.Bytes(), once.Bytes())
		}
	})
}
