package eventlog

import (
	"fmt"
	"strings"

	"github.com/trainyard/trainyard/sched"
)

// MaxText is how many bytes the text of an event has at most where it enters: what jobs and machines say may be of any
// length, and a line of the log may not.
const MaxText = 4 << 10

// CutText returns a text of at most MaxText bytes, cut between two runes where it is longer: a mark at its end says
// that it was.
func CutText(text string) string {
	const mark = "..."
	if len(text) <= MaxText {
		return text
	}
	end := MaxText - len(mark)
	for end > MaxText-len(mark)-4 && text[end]&0xc0 == 0x80 { // in the middle of a rune
		end--
	}
	return strings.Clone(text[:end]) + mark
}

// Checker looks at lines as a Reader does. Its zero value is ready. It allocates no more than a Reader.
type Checker struct {
	rec    Record
	target sched.Target
	event  eventScan
}

// Read reads the line of one event, however long it is. The record is valid until the next call. Whether it may stand
// where it stands is not looked at.
func (c *Checker) Read(line []byte) (*Record, error) {
	if err := c.event.read(line, &c.rec, &c.target); err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	return &c.rec, nil
}

// Refuses returns why a Reader would refuse the line of an event; nil if it would not.
func (c *Checker) Refuses(line []byte) error {
	if len(line) > MaxLine {
		return fmt.Errorf("log: %d bytes, want at most %d", len(line), MaxLine)
	}
	_, err := c.Read(line)
	return err
}
