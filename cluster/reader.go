package cluster

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/trainyard/trainyard/internal/suggest"
)

// maxFigure bounds sizes, watts and prices.
const maxFigure = 1e9

// maxHours bounds times; minHours keeps a mean time between failures from swamping a run.
const (
	maxHours  = 1e6
	minHours  = 0.001
	hoursWish = "0, or a number from 0.001 to 1e6"
)

// maxText is the length of a name in bytes.
const maxText = 200

// reader reads one description. The first thing wrong is kept in err; after it, reading goes on without effect.
type reader struct {
	file string
	err  error
}

// fail keeps the first error, at the position of n.
func (r *reader) fail(n ast.Node, format string, args ...any) { r.failAt(position(n), format, args...) }

func (r *reader) failAt(p *token.Position, format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("cluster: %s:%d:%d: %s", r.file, p.Line, p.Column, fmt.Sprintf(format, args...))
	}
}

// position returns where n begins. The tree gives the first colon for a mapping in block style.
func position(n ast.Node) *token.Position {
	if m, ok := n.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		return m.Values[0].Key.GetToken().Position
	}
	return n.GetToken().Position
}

// field says how the value of a key is read.
type field struct {
	key  string
	read func(key string, n ast.Node)
}

// mapping hands each value of n to its field.
func (r *reader) mapping(n ast.Node, what string, fields []field) {
	m, ok := n.(*ast.MappingNode)
	if !ok {
		r.fail(n, "%s, want a mapping of %s", describe(what, n), strings.Join(keys(fields), ", "))
		return
	}
	lines := make(map[string]int, len(m.Values))
	for _, v := range m.Values {
		key := v.Key.GetToken()
		f := find(fields, key.Value)
		switch first, again := lines[key.Value]; {
		case f == nil:
			list := keys(fields)
			r.failAt(key.Position, "unknown key %s%s, want one of %s", quote(key.Value), suggest.Hint(key.Value, list), strings.Join(list, ", "))
			return
		case again:
			r.failAt(key.Position, "%s given again, want it once (first on line %d)", key.Value, first)
			return
		}
		lines[key.Value] = key.Position.Line
		f.read(key.Value, v.Value)
	}
}

func find(fields []field, key string) *field {
	for i := range fields {
		if fields[i].key == key {
			return &fields[i]
		}
	}
	return nil
}

func keys(fields []field) []string {
	var list []string
	for i := range fields {
		list = append(list, fields[i].key)
	}
	return list
}

// whole reads a decimal whole number from lo to hi.
func whole(r *reader, dst *int, lo, hi int) func(string, ast.Node) {
	return func(key string, n ast.Node) {
		s := number(n, "+-0123456789")
		x, err := strconv.Atoi(s)
		if err != nil || x < lo || x > hi || padded(s) {
			r.fail(n, "%s, want a whole number from %d to %d", describe(key, n), lo, hi)
			return
		}
		*dst = x
	}
}

// padded reports whether s begins with a 0 that some take for octal.
func padded(s string) bool {
	s = strings.TrimLeft(s, "+-")
	return len(s) > 1 && s[0] == '0'
}

// figure reads a number from 0 to maxFigure.
func figure[T ~float32 | ~float64](r *reader, dst *T) func(string, ast.Node) {
	return func(key string, n ast.Node) {
		x, ok := decimal(n)
		if !ok || x > maxFigure {
			r.fail(n, "%s, want a number from 0 to 1e9", describe(key, n))
			return
		}
		*dst = T(x)
	}
}

// hours reads 0 or a number from minHours to maxHours.
func hours(r *reader, dst *float64) func(string, ast.Node) {
	return func(key string, n ast.Node) {
		x, ok := decimal(n)
		if !ok || x != 0 && x < minHours || x > maxHours {
			r.fail(n, "%s, want %s", describe(key, n), hoursWish)
			return
		}
		*dst = x
	}
}

// decimal reads a number >= 0.
func decimal(n ast.Node) (float64, bool) {
	s := number(n, "+-0123456789.eE")
	x, err := strconv.ParseFloat(s, 64)
	if err != nil || !(x >= 0) {
		return 0, false
	}
	return max(x, 0), true // -0 is 0
}

// number returns the text of n if it is a number made of chars, not in quotes, and "" otherwise. We go by the text
// because the tree takes 1e3 for a word, 1_0 and 0x1 for numbers, and 010 for 8.
func number(n ast.Node, chars string) string {
	t := n.GetToken()
	switch n.(type) {
	case *ast.IntegerNode, *ast.FloatNode, *ast.StringNode:
		if t.Type != token.SingleQuoteType && t.Type != token.DoubleQuoteType && strings.Trim(t.Value, chars) == "" {
			return t.Value
		}
	}
	return ""
}

// text reads a word or words that can be printed.
func text(r *reader, dst *string) func(string, ast.Node) {
	return func(key string, n ast.Node) {
		s, ok := n.(*ast.StringNode)
		switch {
		case !ok:
			r.fail(n, "%s, want text (a number goes in quotes)", describe(key, n))
		case s.Value == "" || s.Value != strings.TrimSpace(s.Value) || strings.ContainsFunc(s.Value, unprintable):
			r.fail(n, "%s %s, want printable text without blanks around it", key, quote(s.Value))
		case len(s.Value) > maxText:
			r.fail(n, "%s of %d bytes, want at most %d", key, len(s.Value), maxText)
		default:
			*dst = s.Value
		}
	}
}

func unprintable(c rune) bool { return !unicode.IsPrint(c) }

// describe says what key is, for an error.
func describe(key string, n ast.Node) string {
	switch n := n.(type) {
	case *ast.NullNode:
		return key + " is empty"
	case *ast.MappingNode:
		return key + " is a mapping"
	case *ast.SequenceNode:
		if len(n.Values) == 0 {
			return key + " is an empty list"
		}
		return key + " is a list"
	case *ast.LiteralNode:
		return key + " is a block of text"
	case *ast.StringNode:
		if number(n, "+-0123456789.eE") == "" {
			return key + " " + quote(n.Value)
		}
	}
	return key + " " + shorten(n.GetToken().Value)
}

func quote(s string) string { return strconv.Quote(shorten(s)) }

// shorten keeps errors on one line of a terminal.
func shorten(s string) string {
	if list := []rune(s); len(list) > 40 {
		return string(list[:40]) + "..."
	}
	return s
}
