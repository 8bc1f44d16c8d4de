package strictyaml

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// maxFigure bounds what Figure reads.
const maxFigure = 1e9

// maxText is the length of what Text reads, in bytes.
const maxText = 200

// Whole reads a decimal whole number from lo to hi.
func Whole[T ~int | ~int32](r *Reader, dst *T, lo, hi int) func(string, ast.Node) {
	return func(key string, n ast.Node) {
		s := Number(n, "+-0123456789")
		x, err := strconv.Atoi(s)
		if err != nil || x < lo || x > hi || padded(s) {
			r.Fail(n, "%s, want a whole number from %d to %d", Describe(key, n), lo, hi)
			return
		}
		*dst = T(x)
	}
}

// padded reports whether s starts with a 0 that some take for octal.
func padded(s string) bool {
	s = strings.TrimLeft(s, "+-")
	return len(s) > 1 && s[0] == '0'
}

// Figure reads a number from 0 to 1e9.
func Figure[T ~float32 | ~float64](r *Reader, dst *T) func(string, ast.Node) {
	return func(key string, n ast.Node) {
		x, ok := Decimal(n)
		if !ok || x > maxFigure {
			r.Fail(n, "%s, want a number from 0 to 1e9", Describe(key, n))
			return
		}
		*dst = T(x)
	}
}

// Decimal returns the number that n is, if it is one >= 0.
func Decimal(n ast.Node) (float64, bool) {
	s := Number(n, "+-0123456789.eE")
	x, err := strconv.ParseFloat(s, 64)
	if err != nil || !(x >= 0) {
		return 0, false
	}
	return max(x, 0), true // -0 is 0
}

// Number returns the text of n if it is a number made of chars, not in quotes, and "" otherwise. We go by the text
// because the tree takes 1e3 for a word, 1_0 and 0x1 for numbers, and 010 for 8.
func Number(n ast.Node, chars string) string {
	t := n.GetToken()
	switch n.(type) {
	case *ast.IntegerNode, *ast.FloatNode, *ast.StringNode:
		if t.Type != token.SingleQuoteType && t.Type != token.DoubleQuoteType && strings.Trim(t.Value, chars) == "" {
			return t.Value
		}
	}
	return ""
}

// Text reads a word or words that can be printed, of 200 bytes at most.
func Text(r *Reader, dst *string) func(string, ast.Node) {
	return func(key string, n ast.Node) {
		s, ok := n.(*ast.StringNode)
		switch {
		case !ok:
			r.Fail(n, "%s, want text (a number goes in quotes)", Describe(key, n))
		case s.Value == "" || s.Value != strings.TrimSpace(s.Value) || strings.ContainsFunc(s.Value, unprintable):
			r.Fail(n, "%s %s, want printable text without blanks around it", key, Quote(s.Value))
		case len(s.Value) > maxText:
			r.Fail(n, "%s of %d bytes, want at most %d", key, len(s.Value), maxText)
		default:
			*dst = s.Value
		}
	}
}

func unprintable(c rune) bool { return !unicode.IsPrint(c) }

// Plain returns the text of any value but an empty one, a mapping and a list, numbers and truth values as they were
// written: 1e-3, 010 and yes are the text that stands there.
func Plain(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, true
	}
	return "", false
}

// Describe says what key is, for an error.
func Describe(key string, n ast.Node) string {
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
		if Number(n, "+-0123456789.eE") == "" {
			return key + " " + Quote(n.Value)
		}
	}
	return key + " " + shorten(n.GetToken().Value)
}

// Quote returns s in quotes, cut if it is long.
func Quote(s string) string { return strconv.Quote(shorten(s)) }

// shorten keeps errors on one line of a terminal.
func shorten(s string) string { return cut(s, 40) }

// cut returns s, of a longer one the first n runes.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	if list := []rune(s); len(list) > n {
		return string(list[:n]) + "..."
	}
	return s
}
