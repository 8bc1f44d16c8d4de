package progress

import "bytes"

// ownMark begins a line made for us.
const ownMark = "TRAINYARD "

// own reads the words of a line made for us, what follows the mark: name=value, or the name of a fact.
func own(text []byte) (m Reading) {
	for word := range bytes.FieldsSeq(text) {
		if name, value, has := bytes.Cut(word, []byte("=")); has {
			m.set(name, value)
		} else {
			m.Has |= mark(word)
		}
	}
	m.settle()
	return m
}

// object reads an object made for us.
func object(text []byte) (m Reading) {
	for p := newPairs(text); p.next(); {
		if f := mark(p.key); f == 0 {
			m.set(p.key, p.value)
		} else if string(p.value) == "true" {
			m.Has |= f
		}
	}
	m.settle()
	return m
}
