package eventlog

import (
	"cmp"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/trainyard/trainyard/sched"
)

// form is the declaration that an event is written by.
type form sched.EventForm

// The words of enumerations that have none of their own, and of those that may be read.
var (
	outcomeWords  = list(sched.RejectedJob, sched.Outcome.String)
	kindWords     = list(sched.EventKinds-1, sched.EventKind.String)
	shareWords    = []string{"", "shared"}
	boundaryWords = []string{"", "epoch-end"}
	consentWords  = []string{"", "allow", "require"}
	preemptWords  = []string{"", sched.AlwaysPreempt.String(), sched.NeverPreempt.String()}
	sharingWords  = list(sched.Mechanisms-1, sched.Mechanism.String)
)

// list returns the words of the numbers 0 to last.
func list[T ~uint8](last T, word func(T) string) []string {
	words := make([]string, int(last)+1)
	for i := range words {
		words[i] = word(T(i))
	}
	return words
}

// formOf returns the form of e. Its kind must be known.
func formOf(e *sched.Event) *form { return (*form)(e.Form()) }

func (f *form) fromKey() string { return cmp.Or(f.From, "from") }

func (f *form) appendValue(b []byte, x float64) []byte {
	if f.Value == "" || f.Bare {
		return appendFloat(b, cmp.Or(f.Value, "value"), x)
	}
	return appendNumber(key(b, f.Value), x, 64)
}

// appendCode appends the word for code, or its number where it has none.
func (f *form) appendCode(b []byte, code int32) []byte {
	switch {
	case f.Code == "":
		return appendInt(b, "code", code)
	case f.Words == nil:
		return strconv.AppendInt(key(b, f.Code), int64(code), 10)
	case code >= 0 && int(code) < len(f.Words) && f.Words[code] != "":
		return appendWord(b, f.Code, f.Words[code])
	}
	return appendInt(b, "code", code)
}

// key appends the name of a field, with a comma before it unless it is the first of its object.
func key(b []byte, name string) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	b = append(b, '"')
	b = append(b, name...)
	return append(b, '"', ':')
}

// The functions below append a field unless it is zero.

func appendInt[T ~int | ~int16 | ~int32 | ~uint8](b []byte, name string, x T) []byte {
	if x == 0 {
		return b
	}
	return strconv.AppendInt(key(b, name), int64(x), 10)
}

// appendID appends a number that is None where there is none; zero is one like any other if it is meant.
func appendID(b []byte, name string, id int32, meant bool) []byte {
	if meant && id == sched.None || !meant && id == 0 {
		return b
	}
	return strconv.AppendInt(key(b, name), int64(id), 10)
}

// appendTexts appends an array of strings, unless it is nil.
func appendTexts(b []byte, name string, list []string) []byte {
	if list == nil {
		return b
	}
	b = append(key(b, name), '[')
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendQuoted(b, s)
	}
	return append(b, ']')
}

func appendSeconds(b []byte, name string, d time.Duration) []byte {
	if d == 0 {
		return b
	}
	return sched.AppendSeconds(key(b, name), d)
}

func appendFloat(b []byte, name string, x float64) []byte {
	if math.Float64bits(x) == 0 {
		return b
	}
	return appendNumber(key(b, name), x, 64)
}

func appendFloat32(b []byte, name string, x float32) []byte {
	if math.Float32bits(x) == 0 {
		return b
	}
	return appendNumber(key(b, name), float64(x), 32)
}

// appendNumber appends the shortest decimal that reads back as x; JSON has none for what is not finite.
func appendNumber(b []byte, x float64, bits int) []byte {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return append(strconv.AppendFloat(append(b, '"'), x, 'g', -1, bits), '"')
	}
	return strconv.AppendFloat(b, x, 'g', -1, bits)
}

func appendWord(b []byte, name, word string) []byte {
	b = append(key(b, name), '"')
	return append(append(b, word...), '"')
}

// appendWordOf appends the word numbered i unless it is the first. A number without a word is a bug and panics.
func appendWordOf(b []byte, name string, words []string, i int) []byte {
	if i == 0 {
		return b
	}
	return appendWord(b, name, words[i])
}

func appendText(b []byte, name, text string) []byte {
	if text == "" {
		return b
	}
	return appendQuoted(key(b, name), text)
}

// appendIDs appends an array, also an empty one.
func appendIDs[T ~int32](b []byte, name string, ids []T) []byte {
	b = append(key(b, name), '[')
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(id), 10)
	}
	return append(b, ']')
}

func appendTypes(b []byte, name string, set sched.TypeSet) []byte {
	if set == 0 {
		return b
	}
	b = append(key(b, name), '[')
	for t := range sched.MaxGPUTypes {
		if set>>t&1 == 0 {
			continue
		}
		if b[len(b)-1] != '[' {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(t), 10)
	}
	return append(b, ']')
}

const hexDigits = "0123456789abcdef"

// appendQuoted appends text as a JSON string. A byte that is not UTF-8 becomes the lone surrogate \udcXX, by which
// nothing is lost (as with Python's surrogateescape).
func appendQuoted(b []byte, text string) []byte {
	b = append(b, '"')
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
			i++
			continue
		case c < 0x20 || c == 0x7f:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			i++
			continue
		case c < utf8.RuneSelf:
			b = append(b, c)
			i++
			continue
		}
		if r, n := utf8.DecodeRuneInString(text[i:]); r != utf8.RuneError || n > 1 {
			b = append(b, text[i:i+n]...)
			i += n
			continue
		}
		b = append(b, '\\', 'u', 'd', 'c', hexDigits[c>>4], hexDigits[c&15])
		i++
	}
	return append(b, '"')
}
