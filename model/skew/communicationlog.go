package skew

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// Limits on what ParseLog takes in, far above any model we know of.
const (
	MaxTensors  = 1 << 14 // tensors of a profile
	MaxMessages = 1 << 18 // messages that are looked at; later ones are not read
	maxBytes    = 1 << 50 // of one tensor
	maxName     = 256     // length of a tensor's name
)

// Requests of errors.
const (
	wantedLine    = "tensor NAME BYTES or TIMESTAMP BYTES"
	wantedTensor  = "tensor NAME BYTES"
	wantedMessage = "TIMESTAMP BYTES"
)

// ParseLog reads the profile of a model from one of two kinds of log. The first line decides which; blank lines and
// lines that start with # are passed over.
//
// A tensor log has a line "tensor NAME BYTES" for each tensor, in the order in which they are sent, each name once.
//
// A message log has a line "TIMESTAMP BYTES" for each message of one direction of one process, in the order of time;
// the timestamp is a number in any unit that never falls. Each tensor travels as one message and once in each
// iteration, so sizes repeat, and the period is the list of tensors, from the first message on. The log may start and
// end inside an iteration, must hold two whole ones, and may contain 1 % of foreign messages, which are dropped. The
// first MaxMessages lines are used. Of an iteration that repeats itself inside only the part that repeats is seen, and
// of a model whose messages are all alike nothing can be reported, which is an error.
//
// Errors name the file as name, the line, and what was wanted instead.
//
// Source: Gu et al., NSDI'19, section 3: the profiler finds iterations and skew in the sizes of messages. How it does
// so was not published; the search for the period is ours.
func ParseLog(r io.Reader, name string) (Profile, error) {
	var p parser
	lines := bufio.NewScanner(r) // refuses lines above 64 KiB
	for lines.Scan() && !p.full() {
		p.line++
		text := strings.TrimSpace(lines.Text())
		if text == "" || text[0] == '#' {
			continue
		}
		if wanted := p.add(strings.Fields(text)); wanted != "" {
			return Profile{}, fmt.Errorf("skew: %s: line %d: %s, want %s", name, p.line, quote(text), wanted)
		}
	}
	if err := lines.Err(); err != nil {
		return Profile{}, fmt.Errorf("skew: %s: line %d: %w", name, p.line+1, err)
	}
	sizes, err := p.finish()
	if err != nil {
		return Profile{}, fmt.Errorf("skew: %s: line %d: %w", name, p.line, err)
	}
	tensors := make([]float64, len(sizes))
	for i, b := range sizes {
		tensors[i] = float64(b) / MB
	}
	return Profile{tensors}, nil
}

// parser collects the sizes of a log of either kind.
type parser struct {
	line  int
	names map[string]int // line of each tensor; nil until the first line of a tensor log
	sizes []int64        // in bytes
	last  float64        // timestamp of the last message
}

// full reports whether the rest of the log is not needed.
func (p *parser) full() bool { return p.names == nil && len(p.sizes) == MaxMessages }

// add takes the fields of one line, at least one, and returns what they should have been, or "".
func (p *parser) add(fields []string) string {
	first := len(p.sizes) == 0
	switch {
	case fields[0] == "tensor" && (first || p.names != nil):
		return p.addTensor(fields)
	case p.names != nil:
		return wantedTensor
	}
	at, err := strconv.ParseFloat(fields[0], 64)
	switch {
	case first && (err != nil || len(fields) != 2):
		return wantedLine
	case err != nil || len(fields) != 2:
		return wantedMessage
	case math.IsNaN(at) || math.IsInf(at, 0):
		return "a finite timestamp"
	case !first && at < p.last:
		return fmt.Sprintf("a timestamp >= %v, that of the message above", p.last)
	}
	p.last = at
	return p.addSize(fields[1])
}

func (p *parser) addTensor(fields []string) string {
	if len(fields) != 3 {
		return wantedTensor
	}
	// The name is cloned: it would keep the whole line alive.
	name := strings.Clone(fields[1])
	switch line, twice := p.names[name]; {
	case twice:
		return fmt.Sprintf("each tensor once, this one is in line %d", line)
	case len(name) > maxName:
		return fmt.Sprintf("a name of at most %d bytes", maxName)
	case len(p.sizes) == MaxTensors:
		return fmt.Sprintf("at most %d tensors", MaxTensors)
	}
	if p.names == nil {
		p.names = make(map[string]int)
	}
	p.names[name] = p.line
	return p.addSize(fields[2])
}

func (p *parser) addSize(text string) string {
	size, err := strconv.ParseInt(text, 10, 64)
	if err != nil || size < 1 || size > maxBytes {
		return fmt.Sprintf("bytes, a whole number in 1..%d", int64(maxBytes))
	}
	p.sizes = append(p.sizes, size)
	return ""
}

// finish returns the sizes of the tensors in bytes.
func (p *parser) finish() ([]int64, error) {
	if len(p.sizes) == 0 {
		return nil, errors.New("nothing logged, want lines " + wantedLine)
	}
	if p.names != nil {
		return p.sizes, nil
	}
	return iteration(p.sizes)
}

// quote quotes text for an error, cut to a length fit to print.
func quote(text string) string {
	const longest = 80
	if len(text) > longest {
		text = text[:longest] + "..."
	}
	return strconv.Quote(text)
}
