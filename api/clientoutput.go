package api

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// readOutput reads a piece of an output, of which there may be gigabytes. What a Server writes is mostly read by
// scanOutput, anything else by encoding/json, which takes ten times as long: the result is the same.
func readOutput(b []byte, out *Output) error {
	if scanOutput(b, out) {
		return nil
	}
	*out = Output{}
	return json.Unmarshal(b, out)
}

// scanOutput reads {"attempt":N,"text":"..."}, and reports whether it is that.
func scanOutput(b []byte, out *Output) bool {
	b, ok := bytes.CutPrefix(b, []byte(`{"attempt":`))
	number, text, found := bytes.Cut(b, []byte(`,"text":"`))
	n, err := strconv.ParseUint(string(number), 10, 31)
	if out.Attempt = int(n); !ok || !found || err != nil || len(number) > 1 && number[0] == '0' {
		return false
	}
	text, ok = bytes.CutSuffix(text, []byte(`"}`))
	if !ok || !utf8.Valid(text) {
		return false
	}
	text, ok = unescaped(text)
	out.Text = string(text)
	return ok
}

// unescaped returns the inside of a text of JSON without its escapes. It knows those of ASCII only.
func unescaped(b []byte) (text []byte, ok bool) {
	to := make([]byte, 0, len(b))
	for {
		i := bytes.IndexByte(b, '\\')
		part := b[:max(i, 0)]
		if i < 0 {
			part = b
		}
		if !clean(part) {
			return nil, false
		}
		if to = append(to, part...); i < 0 {
			return to, true
		}
		if len(b) < i+2 {
			return nil, false
		}
		c, n := escapes[b[i+1]], 2
		if b[i+1] == 'u' && len(b) >= i+6 {
			x, err := strconv.ParseUint(string(b[i+2:i+6]), 16, 7)
			if err != nil {
				return nil, false
			}
			c, n = byte(x), 6
		} else if c == 0 {
			return nil, false
		}
		to, b = append(to, c), b[i+n:]
	}
}

// escapes are the characters that stand for one behind a backslash.
var escapes = [256]byte{'n': '\n', 't': '\t', 'r': '\r', 'b': '\b', 'f': '\f', '"': '"', '\\': '\\', '/': '/'}

// clean reports whether b has nothing that must be escaped in a text of JSON.
func clean(b []byte) bool {
	for _, c := range b {
		if c < ' ' || c == '"' {
			return false
		}
	}
	return true
}
