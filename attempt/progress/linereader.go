package progress

import (
	"bytes"
	"fmt"
	"iter"
	"math/bits"
)

// From says which logs a Reader understands. Lines made for us it always does.
type From uint8

// Logs. Auto is all of them.
const (
	Auto      From = iota
	Own            // none
	Tqdm           // bars of tqdm
	HF             // dictionaries and bars of the Hugging Face Trainer
	Lightning      // bars with the number of an epoch
	Steps          // lines in words, as in "step 100/1000"
)

var words = [...]string{"auto", "own", "tqdm", "hf", "lightning", "steps"}

// String returns the word of a known From.
func (f From) String() string { return words[f] }

// ParseFrom returns the From with a word.
func ParseFrom(word string) (From, error) {
	for i, w := range words {
		if w == word {
			return From(i), nil
		}
	}
	return 0, fmt.Errorf("progress from %.40q, want auto, own, tqdm, hf, lightning or steps", word)
}

// Source is where a chunk comes from. Each has lines of its own.
type Source uint8

// Sources. Output may be that of a job and its errors together.
const (
	Output Source = iota
	Errors
	File   // lines of JSON
	Socket // lines of JSON

	sources = 4
)

// rank orders the ways to report a fact by how far they are to be trusted.
type rank uint8

const (
	noRank rank = iota
	ofWords
	ofBar
	ofDictionary
	ofOwn
)

// Reader reads the progress of one attempt. A fact that a better way has reported is not taken from a worse one any
// more: lines made for us are better than dictionaries, these than bars, and these than words.
type Reader struct {
	from   From
	match  *Pattern // nil = none
	budget budget   // of match
	skims  bool
	lines  [sources]splitter
	buffer []byte       // of a line without escape sequences
	ranks  [fields]rank // by which a fact was reported last
	bars   counter
	words  wordCounter
}

// NewReader returns a Reader that has seen nothing.
func NewReader(from From) *Reader { return &Reader{from: from} }

// Match has lines of logs read by a pattern, instead of as From says.
func (r *Reader) Match(p *Pattern) { r.match = p }

// Skim has the Reader pass over the lines of logs from now on, or look at them again. Lines made for us count all the
// same: it takes a fraction of the time.
func (r *Reader) Skim(on bool) { r.skims = on }

// Read takes a chunk, torn anywhere, and yields what the lines that end in it say, in their order. All of it is to be
// ranged over.
func (r *Reader) Read(source Source, chunk []byte) iter.Seq[Reading] {
	return func(yield func(Reading) bool) {
		s := &r.lines[source]
		_ = r.Spent() // whether lines of this chunk are passed over
		for {
			if r.skims && len(s.begun) == 0 {
				chunk = fromMark(chunk)
			}
			line, rest, ok := s.next(chunk)
			if !ok {
				return
			}
			chunk = rest
			if m := r.line(source, line); m.Has != 0 && !yield(m) {
				return
			}
		}
	}
}

// End returns what the last words of a source say, which may lack an end. Has is 0 if that is nothing.
func (r *Reader) End(source Source) Reading { return r.line(source, r.lines[source].end()) }

// shortest is how many bytes a line of a log has at least that says anything.
const shortest = len("step 1")

// line reads one line.
func (r *Reader) line(source Source, line []byte) Reading {
	if text, ok := bytes.CutPrefix(line, []byte(ownMark)); ok {
		return r.judge(own(text), ofOwn)
	}
	if source == File || source == Socket {
		if text := bytes.TrimLeft(line, " \t"); len(text) > 0 && text[0] == '{' {
			return r.judge(object(text), ofOwn)
		}
		return Reading{}
	}
	if r.from == Own && r.match == nil || r.skims || len(line) == 0 || r.match == nil && len(line) < shortest {
		return Reading{}
	}
	line, r.buffer = plainText(r.buffer, line)
	if r.match != nil {
		return r.judge(r.matchLine(line), ofDictionary)
	}
	return r.log(line)
}

// log reads a line of a log.
func (r *Reader) log(line []byte) (m Reading) {
	if r.from != Steps {
		if b, ok := parseBar(line); ok {
			m = r.bar(&b)
			line = b.rest // what is printed while a bar stands in the line comes after it
			if text, ok := bytes.CutPrefix(line, []byte(ownMark)); ok {
				return r.judge(own(text), ofOwn)
			}
		}
	}
	if r.from == Auto || r.from == HF {
		m = merge(m, r.judge(dictionary(line), ofDictionary))
	}
	if m.Has == 0 && (r.from == Auto || r.from == Steps) {
		m = r.plain(line)
	}
	return m
}

// bar takes in a bar and the values that the job adds to it.
func (r *Reader) bar(b *bar) Reading {
	if r.from == Lightning && b.epoch < 0 {
		return Reading{}
	}
	m := r.bars.take(b)
	if m.Has&Step != 0 {
		values := parsePlain(b.postfix)
		m.Loss = values.Loss
		m.Has |= values.Has & Loss
	}
	return r.judge(m, ofBar)
}

// plain takes in a line in words.
func (r *Reader) plain(line []byte) Reading {
	p := parsePlain(line)
	m := r.words.take(&p)
	if r.from == Auto && m.Has&Step != 0 && !r.words.trusted() {
		return Reading{}
	}
	return r.judge(m, ofWords)
}

// judge drops the facts of m that a better way reports.
func (r *Reader) judge(m Reading, by rank) Reading {
	for left := m.Has; left != 0; left &= left - 1 {
		switch i := bits.TrailingZeros16(uint16(left)); {
		case r.ranks[i] > by:
			m.Has &^= 1 << i
		case r.ranks[i] < by:
			m.Again = m.Again || 1<<i == Step && r.ranks[i] != noRank
			r.ranks[i] = by
		}
	}
	if m.Has&Step == 0 {
		m.Again = false
	}
	return m
}

// merge returns what both say; where both say the same, b does.
func merge(a, b Reading) Reading {
	if a.Has == 0 {
		return b
	}
	if b.Has&Step != 0 {
		a.Step, a.Again = b.Step, a.Again || b.Again
	}
	if b.Has&Epoch != 0 {
		a.Epoch = b.Epoch
	}
	if b.Has&Loss != 0 {
		a.Loss = b.Loss
	}
	if b.Has&Speed != 0 {
		a.Speed = b.Speed
	}
	a.Has |= b.Has
	return a
}
