package progress

import "bytes"

// MaxLine is the number of bytes from which on a line is passed over.
const MaxLine = 4 << 10

// splitter puts lines together from chunks. A line ends at a newline or a carriage return: bars are drawn over and over
// between returns. It keeps at most MaxLine bytes, whatever comes.
type splitter struct {
	begun []byte // of a line that has not ended; of MaxLine bytes if it is to be passed over
}

// next takes the first line off b and returns it with what is left; ok is false if b ends before the line does. The
// line is valid until the next call.
func (s *splitter) next(b []byte) (line, rest []byte, ok bool) {
	i := lineEnd(b)
	if i < 0 {
		s.keep(b)
		return nil, nil, false
	}
	line, rest = b[:i], b[i+1:]
	if len(s.begun) > 0 {
		s.keep(line)
		line, s.begun = s.begun, s.begun[:0]
	}
	if len(line) >= MaxLine {
		line = nil
	}
	return line, rest, true
}

// end returns the line that has not ended, and forgets it.
func (s *splitter) end() []byte {
	line := s.begun
	s.begun = s.begun[:0]
	if len(line) >= MaxLine {
		return nil
	}
	return line
}

func (s *splitter) keep(part []byte) {
	s.begun = append(s.begun, part[:min(len(part), MaxLine-len(s.begun))]...)
}

// near is how far is looked for one of the ends of a line before the other: in output that has but one of them, looking
// for the other would take longer than all else.
const near = 256

// lineEnd returns where the first line of b ends, -1 if it does not.
func lineEnd(b []byte) int {
	for from := 0; from < len(b); from += near {
		part := b[from:min(from+near, len(b))]
		i := bytes.IndexByte(part, '\n')
		if i >= 0 {
			part = part[:i]
		}
		if j := bytes.IndexByte(part, '\r'); j >= 0 {
			return from + j
		}
		if i >= 0 {
			return from + i
		}
	}
	return -1
}

// fromMark returns what is left of b, which starts with a line, without whole lines at its start that have nothing made
// for us.
func fromMark(b []byte) []byte {
	i := bytes.Index(b, []byte(ownMark))
	if i < 0 {
		i = len(b)
	}
	return b[bytes.LastIndexAny(b[:i], "\r\n")+1:]
}

// plainText returns line without the escape sequences that move the cursor and colour text. It uses to if there are
// any.
func plainText(to, line []byte) (text, buffer []byte) {
	i := bytes.IndexByte(line, escape)
	if i < 0 {
		return line, to
	}
	to = to[:0]
	for i >= 0 {
		to = append(to, line[:i]...)
		line = line[i+sequence(line[i:]):]
		i = bytes.IndexByte(line, escape)
	}
	to = append(to, line...)
	return to, to
}

const escape = 0x1b

// sequence returns the length of the escape sequence at the start of b, at least 1. One that does not end is as long
// as b.
func sequence(b []byte) int {
	switch {
	case len(b) < 2:
		return len(b)
	case b[1] == '[': // CSI: parameters, then a letter or another final byte
		for i := 2; i < len(b); i++ {
			if b[i] >= 0x40 && b[i] <= 0x7e {
				return i + 1
			}
		}
		return len(b)
	case b[1] == ']': // OSC: up to BEL or ESC \
		for i := 2; i < len(b); i++ {
			if b[i] == 0x07 {
				return i + 1
			}
			if b[i] == escape {
				return min(i+2, len(b))
			}
		}
		return len(b)
	}
	return 2
}
