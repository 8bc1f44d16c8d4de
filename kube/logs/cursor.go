package logs

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"time"
)

// buffer is how much of a line is waited for. Runtimes write down what comes without an end of line in pieces of this
// size (16 KiB in containerd and CRI-O), such as the bars of tqdm.
const buffer = 16 << 10

// cursor is how far a log has been read. The zero value is its start.
type cursor struct {
	at    time.Time // of the last line that was started
	lines int       // of that time, that were read whole
	bytes int       // of the line after them
}

// beyond returns what of a piece that starts at start lies beyond c.
func (c *cursor) beyond(start *cursor, piece []byte) []byte {
	switch sameTime := start.at.Equal(c.at); {
	case start.at.Before(c.at), sameTime && start.lines < c.lines:
		return nil
	case sameTime && start.lines == c.lines:
		return piece[min(max(c.bytes-start.bytes, 0), len(piece)):]
	}
	return piece
}

// advance moves c over a piece.
func (c *cursor) advance(piece []byte) {
	if c.bytes += len(piece); bytes.HasSuffix(piece, []byte("\n")) {
		c.lines, c.bytes = c.lines+1, 0
	}
}

// read reads lines that each start with their time and a blank, to the end of in. What lies before the cursor is passed
// over; the rest is reported, and the cursor is where that ends: what was reported of a line before in broke is not
// reported again.
func (c *cursor) read(in io.Reader, text func(at time.Time, piece []byte)) error {
	var here cursor
	from, past := *c, false
	for lines := bufio.NewReaderSize(in, buffer); ; {
		piece, err := lines.ReadSlice('\n')
		over := err != nil && !errors.Is(err, bufio.ErrBufferFull)
		if here.bytes == 0 {
			at, rest, ok := stamped(piece)
			if !ok && over { // nothing, or torn in its time
				return ended(err)
			}
			if piece = rest; ok && !at.Equal(here.at) {
				here = cursor{at: at}
			}
		}
		start := here
		if here.advance(piece); !past {
			piece = from.beyond(&start, piece)
			past = len(piece) > 0
		}
		if past && len(piece) > 0 {
			*c = here
			text(here.at, piece)
		}
		if over {
			return ended(err)
		}
	}
}

// stamped parts a line from its time.
func stamped(line []byte) (at time.Time, rest []byte, ok bool) {
	stamp, rest, ok := bytes.Cut(line, []byte(" "))
	if !ok {
		return time.Time{}, line, false
	}
	at, err := time.Parse(time.RFC3339Nano, string(stamp))
	if err != nil {
		return time.Time{}, line, false
	}
	return at, rest, true
}

// ended is nil where a log came to its end.
func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
