package progress

import "bytes"

// plain is what a line of a log in words says: "Epoch 3/10, step 100/1000, loss: 2.1, 812.5 samples/s", "Epoch: [3][
// 100/1000] Loss 2.1e+00 (2.3e+00)" or "iteration 100/ 500000 | consumed samples: 25600 | lm loss: 2.1E+00".
type plain struct {
	Reading
	at, total     int64 // of steps, as written; at -1 = none
	epoch, epochs int64 // as written; epoch -1 = none, epochs 0 = unknown
	inner         bool  // the steps are those of the epoch, whose number is from 0
}

// parsePlain reads a line in words. Only the first of each kind of fact counts, and none after a word such as "eval"
// that comes before the step: "eval step 3/50, loss 2.2".
func parsePlain(line []byte) plain {
	p := plain{at: -1, epoch: -1}
	evaluates, saved, checkpoint, failed := false, false, false, false
	for i := 0; i < len(line); i++ {
		if letters[line[i]] == 0 {
			continue
		}
		begin := i
		for i < len(line) && letters[line[i]] != 0 {
			i++
		}
		word := line[begin:i]
		switch kind := kindOf(word); kind {
		case otherWord:
		case savedWord:
			saved = true
		case checkpointWord:
			checkpoint = true
		case failedWord:
			failed = true
		case evalWord:
			evaluates = evaluates || p.at < 0
		default:
			if !evaluates {
				p.fact(kind, line[:begin], word, line[i:])
			}
		}
	}
	if saved && checkpoint && !failed {
		p.Has |= Saved
	}
	return p
}

// fact takes what a word of a kind says, with what stands before and after it.
func (p *plain) fact(kind int, before, word, after []byte) {
	switch kind {
	case stepWord:
		p.step(after)
	case epochWord:
		p.epochOf(after)
	case lossWord:
		p.value(Loss, &p.Loss, after)
	case samplesWord:
		p.samples(before, word, after)
	}
}

// kinds of words.
const (
	otherWord = iota
	stepWord
	epochWord
	lossWord
	samplesWord
	evalWord
	savedWord
	checkpointWord
	failedWord
)

// beginnings are the first letters of the words that kindOf knows: most words need no closer look.
const beginnings = 1<<('c'&31) | 1<<('e'&31) | 1<<('f'&31) | 1<<('g'&31) | 1<<('i'&31) | 1<<('l'&31) |
	1<<('n'&31) | 1<<('s'&31) | 1<<('t'&31) | 1<<('v'&31)

// kindOf returns the kind of a word, in whatever case. Words in the plural count nothing that is done: "warmup steps
// 500".
func kindOf(word []byte) int {
	if len(word) < len("img") || len(word) > len("samples_per_second") || beginnings>>(word[0]&31)&1 == 0 {
		return otherWord
	}
	var small [len("samples_per_second")]byte
	for i, c := range word {
		small[i] = letters[c]
	}
	switch string(small[:len(word)]) {
	case "step", "global_step", "iter", "iteration":
		return stepWord
	case "epoch":
		return epochWord
	case "loss", "train_loss":
		return lossWord
	case "samples", "images", "imgs", "img", "sequences", "samples_per_sec", "samples_per_second":
		return samplesWord
	case "eval", "evaluating", "evaluation", "val", "valid", "validating", "validation", "test", "testing":
		return evalWord
	case "saved":
		return savedWord
	case "checkpoint", "checkpoints", "ckpt":
		return checkpointWord
	case "not", "failed", "error", "cannot":
		return failedWord
	}
	return otherWord
}

// step reads "100", ": 100/1000", " [100/1000]" or " 100 of 1000" after the word.
func (p *plain) step(after []byte) {
	if p.at < 0 {
		p.at, p.total = fraction(after)
	}
}

// epochOf reads the same of epochs, and the steps of "Epoch: [3][ 100/1000]", in which PyTorch's own examples log.
func (p *plain) epochOf(after []byte) {
	if p.epoch >= 0 {
		return
	}
	p.epoch, p.epochs = fraction(after)
	if i := bytes.Index(after[:min(len(after), 16)], []byte("][")); p.epoch >= 0 && p.at < 0 && i >= 0 {
		p.at, p.total = fraction(after[i+1:])
		p.inner = p.total > 0
	}
}

// unled returns b without what may stand between a word and its number.
func unled(b []byte) []byte {
	for i, c := range b {
		switch c {
		case ' ', ':', '=', '#', '[', '(':
		default:
			return b[i:]
		}
	}
	return nil
}

// fraction reads a whole number, -1 if there is none, and what it is a part of, 0 if that is not said.
func fraction(b []byte) (at, total int64) {
	at, b = leadingWhole(unled(b))
	if at < 0 || len(b) > 0 && b[0] == '.' && len(b) > 1 && b[1] >= '0' && b[1] <= '9' {
		return -1, 0
	}
	b = bytes.TrimLeft(b, " ")
	switch {
	case len(b) == 0:
		return at, 0
	case b[0] == '/':
		b = b[1:]
	case bytes.HasPrefix(b, []byte("of ")):
		b = b[3:]
	default:
		return at, 0
	}
	total, _ = leadingWhole(bytes.TrimLeft(b, " "))
	return at, max(total, 0)
}

// value reads a number after ":" or "=" or blanks.
func (p *plain) value(f Field, dst *float64, after []byte) {
	if p.Has&f == 0 {
		p.setNumber(f, dst, leadingNumber(bytes.TrimLeft(after, " :=")))
	}
}

// samples reads "812.5 samples/s", "samples_per_second 812.5" or "consumed samples: 25600".
func (p *plain) samples(before, word, after []byte) {
	switch {
	case bytes.HasPrefix(after, []byte("/s")):
		if p.Has&Speed == 0 {
			p.setNumber(Speed, &p.Speed, trailingNumber(bytes.TrimRight(before, " ")))
		}
	case bytes.IndexByte(word, '_') >= 0:
		p.value(Speed, &p.Speed, after)
	case p.Has&Samples == 0 && bytes.HasSuffix(before, []byte("consumed ")):
		if n, _ := fraction(after); n >= 0 {
			p.Samples = n
			p.Has |= Samples
		}
	}
}

func leadingNumber(b []byte) []byte {
	i := 0
	for i < len(b) && ofNumber(b[i]) {
		i++
	}
	return bytes.TrimRight(b[:i], ".eE+-")
}

func trailingNumber(b []byte) []byte {
	i := len(b)
	for i > 0 && ofNumber(b[i-1]) {
		i--
	}
	return bytes.TrimLeft(b[i:], ".eE+-")
}

func ofNumber(c byte) bool {
	return c >= '0' && c <= '9' || c == '.' || c == 'e' || c == 'E' || c == '+' || c == '-'
}

// dictionary reads the dictionaries that the Hugging Face Trainer prints, as in
//
//	{'loss': 2.1, 'grad_norm': 1.9, 'learning_rate': 4.9e-05, 'epoch': 0.5}
//	{'train_runtime': 12.3, 'train_samples_per_second': 81.0, 'train_loss': 0.5, 'epoch': 3.0}
//
// and other objects in a log that have some of these keys. Numbers in quotes count: later versions print them so.
func dictionary(line []byte) (m Reading) {
	i := bytes.IndexByte(line, '{')
	if i < 0 || i+1 >= len(line) || line[i+1] != '\'' && line[i+1] != '"' {
		return m
	}
	for p := newPairs(line[i:]); p.next(); {
		switch string(p.key) {
		case "loss", "train_loss":
			m.setNumber(Loss, &m.Loss, p.value)
		case "epoch":
			if x, ok := number(p.value); ok {
				m.setEpoch(x)
			}
		case "step", "global_step":
			m.setWhole(Step, &m.Step, p.value)
		case "train_samples_per_second":
			m.setNumber(Speed, &m.Speed, p.value)
		}
	}
	return m
}
