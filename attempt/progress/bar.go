package progress

import "bytes"

// bar is one drawing of a progress bar.
type bar struct {
	name      []byte // what stands before the percentage
	at, total int64  // total 0 = unknown
	epoch     int64  // in the name, as written; -1 = none
	epochs    int64  // in all, as written; 0 = unknown
	first     int64  // number of the first epoch
	unit      []byte // of what is counted; nil = unknown
	postfix   []byte // ", name=value, ..."
	rest      []byte // what follows the bar in its line
	rich      bool   // drawn by Rich
}

// parseBar finds a bar in a line: as tqdm draws it,
//
//	Epoch 3:  45%|####5     | 450/1000 [00:12<00:15, 36.10it/s, v_num=0, loss=0.131]
//	450it [00:12, 36.10it/s]
//
// or as Rich does, for Lightning: the bar is of other characters, and no brackets stand about the time.
//
//	Epoch 3/9  ━━━━━━╸━━━━━━━━ 450/1000 0:00:12 • 0:00:15 36.10it/s loss: 0.131
func parseBar(line []byte) (b bar, ok bool) {
	b, ok = parseRich(line)
	if !ok {
		b, ok = parseTqdm(line)
	}
	if ok {
		b.findEpoch()
	}
	return b, ok
}

// Bounds on the search for a bar, so that a line made to be slow is not.
const (
	maxBrackets = 8   // looked at
	maxBarName  = 200 // bytes
)

// parseTqdm takes the first bracket that a count stands before and a time in.
func parseTqdm(line []byte) (b bar, ok bool) {
	from := 0
	for range maxBrackets {
		i := bytes.IndexByte(line[from:], '[')
		if i < 0 {
			return bar{}, false
		}
		from += i + 1
		if !isTime(line[from:]) {
			continue
		}
		end := bytes.IndexByte(line[from:], ']')
		if end < 0 {
			return bar{}, false
		}
		head := bytes.TrimRight(line[:from-1], " ")
		i = bytes.LastIndexAny(head, " |")
		if b.count(head[i+1:]) {
			b.name = nameOf(head[:i+1])
			b.inBrackets(line[from : from+end])
			b.rest = line[from+end+1:]
			return b, true
		}
	}
	return bar{}, false
}

// isTime reports whether b starts with a time, as in 00:12 or 1:02:03.
func isTime(b []byte) bool {
	i := 0
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	return i > 0 && i+1 < len(b) && b[i] == ':' && b[i+1] >= '0' && b[i+1] <= '9'
}

// count reads "450/1000", or "450it" where the total is unknown.
func (b *bar) count(text []byte) bool {
	at, total, has := bytes.Cut(text, []byte("/"))
	var ok bool
	if has {
		if b.at, ok = scaled(at); ok {
			b.total, ok = scaled(total)
			ok = ok || string(total) == "?"
		}
		return ok
	}
	i := len(text)
	for i > 0 && (text[i-1] < '0' || text[i-1] > '9') {
		i--
	}
	b.unit = text[i:]
	if len(b.unit) > 1 && bytes.IndexByte([]byte("kMG"), b.unit[0]) >= 0 { // 1.20Mit
		i, b.unit = i+1, b.unit[1:]
	}
	b.at, ok = scaled(text[:i])
	return ok && len(b.unit) > 0
}

// scaled reads a number that may end in k, M, G or T: thousands, and so on.
func scaled(text []byte) (int64, bool) {
	factor := 1.0
	if n := len(text); n > 0 {
		switch text[n-1] {
		case 'k':
			factor = 1e3
		case 'M':
			factor = 1e6
		case 'G':
			factor = 1e9
		case 'T':
			factor = 1e12
		}
		if factor > 1 {
			text = text[:n-1]
		}
	}
	if n, ok := whole(text); ok && factor == 1 {
		return n, true
	}
	x, ok := number(text)
	if x *= factor; !ok || x > 1<<53 {
		return 0, false
	}
	return int64(x + 0.5), true
}

// nameOf returns what stands before a bar and its percentage.
func nameOf(head []byte) []byte {
	if i := bytes.IndexByte(head, '%'); i >= 0 {
		head = bytes.TrimRight(head[:i], "0123456789")
	} else if i := bytes.IndexByte(head, '|'); i >= 0 {
		head = head[:i]
	}
	return bytes.TrimRight(head[max(len(head)-maxBarName, 0):], ": ")
}

// inBrackets reads "00:12<00:15, 36.10it/s, loss=0.131": the times, the speed, what the job adds.
func (b *bar) inBrackets(text []byte) {
	_, text, _ = bytes.Cut(text, []byte(","))
	speed, postfix, _ := bytes.Cut(text, []byte(","))
	b.postfix = postfix
	speed = bytes.TrimSpace(speed)
	if over, rest, ok := bytes.Cut(speed, []byte("/")); ok {
		if string(rest) != "s" { // 1.20s/it
			b.unit = rest
		} else {
			b.unit = bytes.TrimLeft(over, "0123456789.? ")
		}
	}
}

// parseRich finds a bar of Rich.
func parseRich(line []byte) (b bar, ok bool) {
	first := bytes.Index(line, []byte("━"))
	if first < 0 {
		return bar{}, false
	}
	last := max(bytes.LastIndex(line, []byte("━")), bytes.LastIndex(line, []byte("╸")),
		bytes.LastIndex(line, []byte("╺")))
	text := bytes.TrimLeft(line[last+len("━"):], " ")
	count, text, _ := bytes.Cut(text, []byte(" "))
	if bytes.IndexByte(count, '/') < 0 || !b.count(count) || !isTime(text) {
		return bar{}, false
	}
	b.name = bytes.TrimRight(line[max(first-maxBarName, 0):first], " ")
	if i := bytes.Index(text, []byte("it/s")); i >= 0 {
		b.postfix = text[i+len("it/s"):]
	}
	b.unit = []byte("it")
	b.rich = true
	return b, true
}

// findEpoch reads "Epoch 3", "epoch: 3/10" or "Epoch [3/10]" in the name. With a total, tqdm's first epoch is taken for
// 1, as people write it; without, and with Rich, Lightning draws, whose first one is 0.
func (b *bar) findEpoch() {
	b.epoch = -1
	i := indexWord(b.name, "epoch")
	if i < 0 {
		return
	}
	rest := unled(b.name[i+len("epoch"):])
	n, rest := leadingWhole(rest)
	if n < 0 || n > maxEpochs {
		return
	}
	b.epoch = n
	if rest = bytes.TrimLeft(rest, " "); len(rest) > 0 && rest[0] == '/' {
		if m, _ := leadingWhole(bytes.TrimLeft(rest[1:], " ")); m >= n && m < maxEpochs {
			b.epochs, b.first = m, 1
		}
	}
	if b.rich && b.epochs > 0 { // 0/9 .. 9/9
		b.epochs, b.first = b.epochs+1, 0
	}
	if b.epoch < b.first {
		b.epoch, b.epochs = -1, 0
	}
}

// leadingWhole takes a whole number off b, -1 if there is none.
func leadingWhole(b []byte) (n int64, rest []byte) {
	i := 0
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	n, ok := whole(b[:i])
	if !ok {
		return -1, b
	}
	return n, b[i:]
}

// foreign reports whether a word, in whatever case, is one of those in the name of a bar that does not count training
// steps.
func foreign(word []byte) bool {
	var small [len("preprocessing")]byte
	if len(word) > len(small) {
		return false
	}
	for i, c := range word {
		small[i] = letters[c]
	}
	switch string(small[:len(word)]) {
	case "val", "valid", "validation", "validating", "eval", "evaluating", "evaluation", "test", "testing",
		"predict", "predicting", "prediction", "sanity", "inference", "loading", "downloading", "fetching", "uploading",
		"map", "filter",
		"tokenizing", "generating", "extracting", "saving", "preprocessing", "epochs":
		return true
	}
	return false
}

// stepUnits are the units of bars that count training steps.
var stepUnits = []string{"it", "step", "steps", "batch", "batches", "iter", "iters"}

// training reports whether b counts training steps, as far as its name and unit show.
func (b *bar) training() bool {
	for i := 0; i < len(b.name); i++ {
		begin := i
		for i < len(b.name) && letters[b.name[i]] != 0 {
			i++
		}
		if i > begin && foreign(b.name[begin:i]) {
			return false
		}
	}
	if b.unit == nil {
		return true
	}
	unit := bytes.TrimSpace(b.unit)
	for _, u := range stepUnits {
		if string(unit) == u {
			return true
		}
	}
	return false
}

// outer reports whether b counts whole epochs.
func (b *bar) outer() bool {
	return string(bytes.TrimSpace(b.unit)) == "epoch" || b.epoch < 0 && indexWord(b.name, "epochs") >= 0
}

// indexWord returns where word, in lower case, stands in text as a word of its own, in whatever case; -1 if it does
// not.
func indexWord(text []byte, word string) int {
	for i := 0; i+len(word) <= len(text); i++ {
		if i > 0 && letters[text[i-1]] != 0 {
			continue
		}
		j := 0
		for j < len(word) && letters[text[i+j]] == word[j] {
			j++
		}
		if j == len(word) && (i+j == len(text) || letters[text[i+j]] == 0) {
			return i
		}
	}
	return -1
}

// letters are the letters that words are made of, in lower case; 0 = none. Figures do not belong to words: "Epoch3" is
// a word and a number.
var letters = func() (table [256]byte) {
	table['_'] = '_'
	for c := byte('a'); c <= 'z'; c++ {
		table[c], table[c-'a'+'A'] = c, c
	}
	return table
}()
