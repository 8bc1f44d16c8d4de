package progress

// ownMark starts a line made for us.
const ownMark = "TRAINYARD "

// own reads the words of a line made for us, what follows the mark: name=value, or the name of a fact, with blanks
// between.
func own(text []byte) (m Reading) {
	for len(text) > 0 {
		end, equals := 0, -1
		for ; end < len(text) && text[end] > ' '; end++ {
			if text[end] == '=' && equals < 0 {
				equals = end
			}
		}
		switch {
		case equals >= 0:
			m.set(text[:equals], text[equals+1:end])
		case end > 0:
			m.Has |= mark(text[:end])
		}
		text = text[min(end+1, len(text)):]
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
