package progress

import "bytes"

// pairs walks over the keys of an object in JSON or a dictionary as Python prints it, its outermost level only. It is
// lenient: it checks no more than it needs, and what it cannot follow ends the walk.
type pairs struct {
	key, value []byte // of a text, without quotes and with escapes as they stand; of what is nested, empty
	rest       []byte
}

// newPairs returns the pairs of the first object in text.
func newPairs(text []byte) pairs {
	i := bytes.IndexByte(text, '{')
	if i < 0 {
		return pairs{}
	}
	return pairs{rest: text[i+1:]}
}

// next goes to the next pair.
func (p *pairs) next() bool {
	b := bytes.TrimLeft(p.rest, " \t,")
	key, b, ok := quoted(b)
	if !ok {
		return false
	}
	b = bytes.TrimLeft(b, " \t")
	if len(b) == 0 || b[0] != ':' {
		return false
	}
	value, b, ok := item(bytes.TrimLeft(b[1:], " \t"))
	p.key, p.value, p.rest = key, value, b
	return ok
}

// quoted takes a text in single or double quotes off b.
func quoted(b []byte) (text, rest []byte, ok bool) {
	if len(b) == 0 || b[0] != '"' && b[0] != '\'' {
		return nil, nil, false
	}
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case b[0]:
			return b[1:i], b[i+1:], true
		}
	}
	return nil, nil, false
}

// item takes a value off b: a text, a word, or something nested.
func item(b []byte) (value, rest []byte, ok bool) {
	if len(b) == 0 {
		return nil, nil, false
	}
	switch b[0] {
	case '"', '\'':
		return quoted(b)
	case '{', '[', '(':
		return nil, skipNested(b), true
	}
	i := bytes.IndexAny(b, ",} \t")
	if i < 0 {
		return nil, nil, false
	}
	return b[:i], b[i:], true
}

// skipNested returns what follows the bracket that b starts with and all within.
func skipNested(b []byte) []byte {
	depth := 0
	for len(b) > 0 {
		switch b[0] {
		case '{', '[', '(':
			depth++
		case '}', ']', ')':
			if depth--; depth == 0 {
				return b[1:]
			}
		case '"', '\'':
			_, rest, ok := quoted(b)
			if !ok {
				return nil
			}
			b = rest
			continue
		}
		b = b[1:]
	}
	return nil
}
