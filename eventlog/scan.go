package eventlog

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// scan reads one line of JSON from left to right. The first error sticks, and from then on all it returns is zero.
type scan struct {
	b    []byte
	i    int
	err  error
	at   []byte            // key whose value is being read
	keys [][]byte          // of the objects being read, to find repeats
	ids  []int32           // scratch of int32s
	stop bool              // read no further
	same map[string]string // see shared
}

func (s *scan) reset(line []byte) {
	*s = scan{b: line, keys: s.keys[:0], ids: s.ids[:0], same: s.same}
}

// end returns the first error, which may be that something is left over.
func (s *scan) end() error {
	if s.space(); s.err == nil && s.i < len(s.b) {
		s.at = nil
		s.fail("%q is left over, want the end of the line", s.rest())
	}
	return s.err
}

// fail notes the first error, with the key it is about.
func (s *scan) fail(format string, args ...any) {
	if s.err != nil {
		return
	}
	s.err = fmt.Errorf(format, args...)
	if s.at != nil {
		s.err = fmt.Errorf("%s: %w", s.at, s.err)
	}
}

// want fails unless ok.
func (s *scan) want(ok bool, wanted string) {
	if !ok {
		s.fail("out of range, want %s", wanted)
	}
}

// rest returns the start of what was not read yet, for errors.
func (s *scan) rest() []byte {
	const some = 20
	return s.b[s.i:min(s.i+some, len(s.b))]
}

func (s *scan) space() {
	for s.i < len(s.b) && (s.b[s.i] == ' ' || s.b[s.i] == '\t' || s.b[s.i] == '\r') {
		s.i++
	}
}

// eat reads c if it comes next.
func (s *scan) eat(c byte) bool {
	s.space()
	if s.err != nil || s.i == len(s.b) || s.b[s.i] != c {
		return false
	}
	s.i++
	return true
}

func (s *scan) expect(c byte) {
	if !s.eat(c) {
		s.fail("%q, want %q", s.rest(), c)
	}
}

// object reads an object; field reads the value of a key, or returns false if it does not know the key.
func (s *scan) object(field func(key []byte) bool) {
	s.expect('{')
	if s.err != nil || s.eat('}') {
		return
	}
	outer, from := s.at, len(s.keys)
	for s.err == nil {
		s.at = nil
		key := s.raw()
		if s.repeated(key, from) {
			s.fail("key %q is there twice, want it once", key)
		}
		s.expect(':')
		s.at = key
		if s.err == nil && !field(key) {
			s.at = nil
			s.fail("key %q is not known", key)
		}
		if s.stop || s.eat('}') {
			break
		}
		s.expect(',')
	}
	if s.at, s.keys = outer, s.keys[:from]; s.err != nil && outer != nil {
		s.err = fmt.Errorf("%s: %w", outer, s.err)
	}
}

// repeated notes key and reports whether it stands in s.keys from the given index on. Objects with many keys are only
// those of settings, which are few.
func (s *scan) repeated(key []byte, from int) bool {
	for _, k := range s.keys[from:] {
		if bytes.Equal(k, key) {
			return true
		}
	}
	if len(s.keys)-from >= maxKeys {
		s.fail("more than %d keys, want at most that", maxKeys)
	}
	s.keys = append(s.keys, key)
	return false
}

// maxKeys is the number of keys one object may have.
const maxKeys = 1000

// array reads an array; element reads one of its values.
func (s *scan) array(element func()) {
	s.expect('[')
	if s.eat(']') {
		return
	}
	for s.err == nil {
		element()
		if s.eat(']') {
			return
		}
		s.expect(',')
	}
}

func (s *scan) boolean() bool {
	s.space()
	for _, x := range []struct {
		word  string
		value bool
	}{{"true", true}, {"false", false}} {
		if s.err == nil && bytes.HasPrefix(s.b[s.i:], []byte(x.word)) {
			s.i += len(x.word)
			return x.value
		}
	}
	s.fail("%q, want true or false", s.rest())
	return false
}

// number reads the text of a number.
func (s *scan) number() []byte {
	s.space()
	from := s.i
	s.skip("-")
	zero := s.i < len(s.b) && s.b[s.i] == '0'
	whole := s.digits()
	ok := whole == 1 || whole > 1 && !zero
	if s.skip(".") {
		ok = ok && s.digits() > 0
	}
	if s.skip("eE") {
		s.skip("+-")
		ok = ok && s.digits() > 0
	}
	if text := s.b[from:s.i]; ok && s.err == nil {
		return text
	}
	s.i = from
	s.fail("%q, want a number", s.rest())
	return nil
}

// skip passes over the next byte if it is one of chars.
func (s *scan) skip(chars string) bool {
	if s.i < len(s.b) && strings.IndexByte(chars, s.b[s.i]) >= 0 {
		s.i++
		return true
	}
	return false
}

func (s *scan) digits() int {
	from := s.i
	for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
		s.i++
	}
	return s.i - from
}

// integer reads a whole number of so many bits.
func (s *scan) integer(bits int) int64 {
	text := s.number()
	if text == nil {
		return 0
	}
	x, err := strconv.ParseInt(string(text), 10, bits)
	if err != nil {
		s.fail("%s, want a whole number of %d bits", text, bits)
	}
	return x
}

func (s *scan) unsigned() uint64 {
	text := s.number()
	if text == nil {
		return 0
	}
	x, err := strconv.ParseUint(string(text), 10, 64)
	if err != nil {
		s.fail("%s, want a whole number >= 0 of 64 bits", text)
	}
	return x
}

// float reads a number, or the name of one that is not finite.
func (s *scan) float(bits int) float64 {
	if s.space(); s.i < len(s.b) && s.b[s.i] == '"' {
		switch text := s.raw(); string(text) {
		case "NaN":
			return math.NaN()
		case "+Inf":
			return math.Inf(1)
		case "-Inf":
			return math.Inf(-1)
		default:
			s.fail("%q, want a number, NaN, +Inf or -Inf", text)
			return 0
		}
	}
	text := s.number()
	if text == nil {
		return 0
	}
	x, err := strconv.ParseFloat(string(text), bits)
	if err != nil {
		s.fail("%s, want a number of %d bits", text, bits)
	}
	return x
}

// duration reads seconds, exactly.
func (s *scan) duration() time.Duration {
	text := s.number()
	if text == nil {
		return 0
	}
	d, ok := parseSeconds(text)
	if !ok {
		s.fail("%s, want seconds with at most 9 decimals", text)
	}
	return d
}

// parseSeconds is the inverse of sched.AppendSeconds.
func parseSeconds(text []byte) (time.Duration, bool) {
	digits := bytes.TrimPrefix(text, []byte("-"))
	limit := uint64(math.MaxInt64)
	if len(digits) < len(text) {
		limit++
	}
	whole, frac, _ := bytes.Cut(digits, []byte("."))
	if len(frac) > 9 {
		return 0, false
	}
	ns := uint64(0)
	for i := range len(whole) + 9 {
		c := byte('0')
		switch {
		case i < len(whole):
			c = whole[i]
		case i-len(whole) < len(frac):
			c = frac[i-len(whole)]
		}
		if c < '0' || c > '9' || ns > (limit-uint64(c-'0'))/10 {
			return 0, false
		}
		ns = 10*ns + uint64(c-'0')
	}
	if len(digits) < len(text) {
		return time.Duration(-ns), true
	}
	return time.Duration(ns), true
}

// text reads a string.
func (s *scan) text() string { return string(s.raw()) }

// mostShared is how many texts shared knows.
const mostShared = 1 << 12

// shared reads a string that others of the log are likely to equal: they are one in memory.
func (s *scan) shared() string {
	raw := s.raw()
	if text, known := s.same[string(raw)]; known {
		return text
	}
	if s.same == nil || len(s.same) >= mostShared {
		s.same = make(map[string]string)
	}
	text := string(raw)
	s.same[text] = text
	return text
}

// raw reads a string; what it returns may be part of the line.
func (s *scan) raw() []byte {
	if s.expect('"'); s.err != nil {
		return nil
	}
	end := s.i
	for end < len(s.b) && s.b[end] != '"' && s.b[end] != '\\' {
		end++
	}
	if end < len(s.b) && s.b[end] == '"' {
		text := s.b[s.i:end]
		if s.i = end + 1; !plain(text) {
			s.fail("%q, want UTF-8 without control characters", text)
		}
		return text
	}
	text, n, err := unescape(s.b[s.i:])
	if err != nil {
		s.fail("%w", err)
		return nil
	}
	s.i += n
	return text
}

// plain reports whether text may stand in a string as it is.
func plain(text []byte) bool {
	for _, c := range text {
		if c < 0x20 {
			return false
		}
	}
	return utf8.Valid(text)
}

var errText = errors.New(`text without an end, want "`)

// unescape returns the text of the string that starts b, without its first quote, and how long it is in b.
func unescape(b []byte) (text []byte, n int, err error) {
	text = []byte{}
	for n < len(b) {
		switch c := b[n]; {
		case c == '"':
			return text, n + 1, nil
		case c == '\\':
			var k int
			if text, k = appendEscape(text, b[n:]); k == 0 {
				return nil, 0, fmt.Errorf("%q is no escape of JSON, or a surrogate alone", b[n:min(n+6, len(b))])
			}
			n += k
		default:
			k := bytes.IndexAny(b[n:], `"\`)
			if k < 0 {
				return nil, 0, errText
			}
			if !plain(b[n : n+k]) {
				return nil, 0, fmt.Errorf("%q, want UTF-8 without control characters", b[n:n+k])
			}
			text = append(text, b[n:n+k]...)
			n += k
		}
	}
	return nil, 0, errText
}

// appendEscape appends what the escape at the start of b stands for, and returns how long that is, 0 if it is none. The
// surrogates by which bytes that are not UTF-8 are written, see appendQuoted, give those bytes.
func appendEscape(text, b []byte) ([]byte, int) {
	if len(b) < 2 {
		return text, 0
	}
	const short, means = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	if i := bytes.IndexByte([]byte(short), b[1]); i >= 0 {
		return append(text, means[i]), 2
	}
	r, ok := hex4(b)
	if !ok {
		return text, 0
	}
	switch {
	case !utf16.IsSurrogate(r):
		return utf8.AppendRune(text, r), 6
	case r >= 0xdc80 && r <= 0xdcff:
		return append(text, byte(r)), 6
	}
	low, ok := hex4(b[6:])
	if pair := utf16.DecodeRune(r, low); ok && pair != utf8.RuneError {
		return utf8.AppendRune(text, pair), 12
	}
	return text, 0
}

// hex4 returns the number in \uXXXX at the start of b.
func hex4(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	x := rune(0)
	for _, c := range b[2:6] {
		i := bytes.IndexByte([]byte("0123456789abcdefABCDEF"), c)
		if i < 0 {
			return 0, false
		}
		if i > 15 {
			i -= 6
		}
		x = x<<4 | rune(i)
	}
	return x, true
}
