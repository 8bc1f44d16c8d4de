package strictyaml

import (
	"bytes"
	"errors"
	"io"
	"os"
	"unicode/utf8"

	yaml "github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Document returns the one document of src, which may have limit bytes, a whole number of MiB. Without one, or if it is
// not in YAML, it returns nil and keeps what is wrong; request says what an empty document lacks.
func (r *Reader) Document(src []byte, limit int, wanted string) ast.Node {
	start := &token.Position{Line: 1, Column: 1}
	if len(src) > limit {
		r.FailAt(start, "more than %d MiB, want less", limit>>20)
		return nil
	}
	src = bytes.TrimPrefix(src, []byte("\ufeff"))
	if p := badByte(src); p != nil {
		r.FailAt(p, "not text in UTF-8, want a YAML file")
		return nil
	}
	tokens := lexer.Tokenize(string(src))
	if p, what := checkTokens(tokens); p != nil {
		r.FailAt(p, "%s", what)
		return nil
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey()) // duplicates are ours to report
	if err != nil {
		r.syntax(err)
		return nil
	}
	return r.only(file, start, wanted)
}

// only returns the body of the only document of file.
func (r *Reader) only(file *ast.File, start *token.Position, wanted string) ast.Node {
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		r.FailAt(start, "empty document, want %s", wanted)
		return nil
	}
	if len(file.Docs) > 1 {
		if file.Docs[1].Start != nil {
			start = file.Docs[1].Start.Position
		}
		r.FailAt(start, "a second document, want one")
		return nil
	}
	return file.Docs[0].Body
}

// syntax keeps an error of the parser.
func (r *Reader) syntax(err error) {
	p, what := &token.Position{Line: 1, Column: 1}, "not understood"
	if e := yaml.Error(nil); errors.As(err, &e) {
		what = cut(e.GetMessage(), 200) // it may quote the file
		if t := e.GetToken(); t != nil && t.Position != nil {
			p = t.Position
		}
	}
	r.FailAt(p, "%s, want YAML", what)
}

// ReadFile returns the content of a file, of one longer than limit just enough for Document to refuse it.
func ReadFile(path string, limit int) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, int64(limit)+1))
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
