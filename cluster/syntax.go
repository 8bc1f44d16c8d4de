package cluster

import (
	"bytes"
	"errors"
	"unicode/utf8"

	yaml "github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// document returns the one document of src, or keeps what is wrong.
func (r *reader) document(src []byte) ast.Node {
	start := &token.Position{Line: 1, Column: 1}
	if len(src) > maxFile {
		r.failAt(start, "more than 1 MiB, want less")
		return nil
	}
	src = bytes.TrimPrefix(src, []byte("\ufeff"))
	if p := badByte(src); p != nil {
		r.failAt(p, "not text in UTF-8, want a YAML file")
		return nil
	}
	tokens := lexer.Tokenize(string(src))
	if p, what := checkTokens(tokens); p != nil {
		r.failAt(p, "%s", what)
		return nil
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey()) // duplicates are ours to report
	if err != nil {
		r.syntax(err)
		return nil
	}
	return r.only(file, start)
}

// only returns the body of the only document of file.
func (r *reader) only(file *ast.File, start *token.Position) ast.Node {
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		r.failAt(start, "empty document, want nodes")
		return nil
	}
	if len(file.Docs) > 1 {
		if file.Docs[1].Start != nil {
			start = file.Docs[1].Start.Position
		}
		r.failAt(start, "a second document, want one")
		return nil
	}
	return file.Docs[0].Body
}

// syntax keeps an error of the parser.
func (r *reader) syntax(err error) {
	p, what := &token.Position{Line: 1, Column: 1}, "not understood"
	if e := yaml.Error(nil); errors.As(err, &e) {
		what = e.GetMessage()
		if t := e.GetToken(); t != nil && t.Position != nil {
			p = t.Position
		}
	}
	r.failAt(p, "%s, want YAML", what)
}

// badByte returns where src is not UTF-8 or has a NUL, or nil.
func badByte(src []byte) *token.Position {
	p := token.Position{Line: 1, Column: 1}
	for len(src) > 0 {
		c, size := utf8.DecodeRune(src)
		switch {
		case c == 0 || c == utf8.RuneError && size == 1:
			return &p
		case c == '\n':
			p.Line, p.Column = p.Line+1, 1
		default:
			p.Column++
		}
		src = src[size:]
	}
	return nil
}
