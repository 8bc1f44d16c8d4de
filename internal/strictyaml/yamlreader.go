package strictyaml

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/trainyard/trainyard/internal/suggest"
)

// Reader reads one document. The first thing wrong is kept, see Err; after it, reading goes on without effect.
type Reader struct {
	Prefix string // opens every error: the package that reads
	File   string // the file's name, as it stands in errors

	err error
}

// Err returns the first thing wrong, or nil: "PREFIX: FILE:LINE:COLUMN: what is wrong, what is wanted".
func (r *Reader) Err() error { return r.err }

// Fail keeps the first error, at the position of n.
func (r *Reader) Fail(n ast.Node, format string, args ...any) { r.FailAt(position(n), format, args...) }

// FailAt keeps the first error, at p.
func (r *Reader) FailAt(p *token.Position, format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%s: %s:%d:%d: %s", r.Prefix, r.File, p.Line, p.Column, fmt.Sprintf(format, args...))
	}
}

// position returns where n starts. The tree gives the first colon for a mapping in block style.
func position(n ast.Node) *token.Position {
	if m, ok := n.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		return m.Values[0].Key.GetToken().Position
	}
	return n.GetToken().Position
}

// Field says how the value of a key is read.
type Field struct {
	Key  string
	Read func(key string, n ast.Node)
}

// Key returns the field of a key.
func Key(key string, read func(key string, n ast.Node)) Field { return Field{key, read} }

// Mapping hands each value of n to its field, in the order of the file. what names n in errors.
func (r *Reader) Mapping(n ast.Node, what string, fields []Field) {
	list := keys(fields)
	r.Each(n, what, strings.Join(list, ", "), func(key *token.Token, value ast.Node) {
		f := find(fields, key.Value)
		if f == nil {
			r.FailAt(key.Position, "unknown key %s%s, want one of %s", Quote(key.Value), suggest.Hint(key.Value, list),
				strings.Join(list, ", "))
			return
		}
		f.Read(key.Value, value)
	})
}

// Each calls f for each key of the mapping n, in the order of the file, until something is wrong. No key comes twice.
// what names n in errors, and of is what it should be a mapping of.
func (r *Reader) Each(n ast.Node, what, of string, f func(key *token.Token, value ast.Node)) {
	m, ok := n.(*ast.MappingNode)
	if !ok {
		r.Fail(n, "%s, want a mapping of %s", Describe(what, n), of)
		return
	}
	lines := make(map[string]int, len(m.Values))
	for _, v := range m.Values {
		key := v.Key.GetToken()
		if first, again := lines[key.Value]; again {
			r.FailAt(key.Position, "%s given again, want it once (first on line %d)", shorten(key.Value), first)
		}
		if r.err != nil {
			return
		}
		lines[key.Value] = key.Position.Line
		f(key, v.Value)
	}
}

func find(fields []Field, key string) *Field {
	for i := range fields {
		if fields[i].Key == key {
			return &fields[i]
		}
	}
	return nil
}

func keys(fields []Field) []string {
	var list []string
	for i := range fields {
		list = append(list, fields[i].Key)
	}
	return list
}
