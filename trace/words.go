package trace

import "strings"

// words keeps copies of words so that they do not hold on to the text of the file they came from.
type words struct {
	block strings.Builder
	known map[string]string
	last  [meanings]string // what intern returned last for each column: most words repeat
}

const wordBlock = 64 << 10

// keep returns a copy of s, which lies in one block with the copies made before and after it.
func (w *words) keep(s string) string {
	if w.block.Cap()-w.block.Len() < len(s) {
		w.block = strings.Builder{}
		w.block.Grow(wordBlock)
	}
	from := w.block.Len()
	w.block.WriteString(s)
	return w.block.String()[from:]
}

// intern returns the one copy of s, a word in the column that means m.
func (w *words) intern(m meaning, s string) string {
	if w.last[m] == s {
		return w.last[m]
	}
	word, ok := w.known[s]
	if !ok {
		if w.known == nil {
			w.known = make(map[string]string)
		}
		word = strings.Clone(s)
		w.known[word] = word
	}
	w.last[m] = word
	return word
}
