package strictyaml

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// pet is what the tests read.
type pet struct {
	name  string
	legs  int32
	mass  float64
	notes []string // key=value
}

func parse(src string) (pet, error) {
	var p pet
	r := &Reader{Prefix: "pet", File: "f"}
	doc := r.Document([]byte(src), 1<<20, "a pet")
	if r.Err() == nil {
		r.Mapping(doc, "the document", []Field{
			Key("name", Text(r, &p.name)),
			Key("legs", Whole(r, &p.legs, 0, 8)),
			Key("mass_kg", Figure(r, &p.mass)),
			Key("notes", func(key string, n ast.Node) {
				r.Each(n, key, "words to text", func(k *token.Token, v ast.Node) {
					s, ok := Plain(v)
					if !ok {
						r.Fail(v, "%s, want text", Describe(k.Value, v))
					}
					p.notes = append(p.notes, k.Value+"="+s)
				})
			}),
		})
	}
	return p, r.Err()
}

// Ensure that plain values are taken as they were written.
func TestRead(t *testing.T) {
	p, err := parse("name: Rex\nlegs: +4\nmass_kg: 1.5e1\nnotes:\n  a: yes\n  b: 010\n  c: 1e-3\n  d: 0x1F\n  e: 'x " +
		"y'\n  f: |\n    two\n    lines\n  g: .inf\n  h: 1_000\n  i: True\n  4: \"\\u00e9\"\n")
	if err != nil {
		t.Fatal(err)
	}
	got, want := fmt.Sprintf("%q %d %v %q", p.name, p.legs, p.mass, p.notes),
		`"Rex" 4 15 ["a=yes" "b=010" "c=1e-3" "d=0x1F" "e=x y" "f=two\nlines\n" "g=.inf" "h=1_000" "i=True" "4=é"]`
	if got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// Ensure that the first thing wrong is kept, with its position and what is wanted.
func TestErrors(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{"", `1:1: empty document, want a pet`},
		{"legs: 9", `1:7: legs 9, want a whole number from 0 to 8`},
		{"legs: 04", `1:7: legs 04, want a whole number from 0 to 8`},
		{"mas_kg: 4\nlegs: 9", `1:1: unknown key "mas_kg" (did you mean "mass_kg"?), want one of name, legs, ` +
			`mass_kg, notes`},
		{"mass_kg: -1", `1:10: mass_kg -1, want a number from 0 to 1e9`},
		{"notes: {a: 1,\n  a: 2}", `2:3: a given again, want it once (first on line 1)`},
		{"notes: {a: [1]}\nnoes: 1", `1:12: a is a list, want text`},
		{"notes: [a]", `1:8: notes is a list, want a mapping of words to text`},
		{"notes: {a:}", `1:11: a is empty, want text`},
		{"- a", `1:1: the document is a list, want a mapping of name, legs, mass_kg, notes`},
		{"name: " + strings.Repeat("x", 50) + "\x01", `1:7: name "` + strings.Repeat("x", 40) +
			`...", want printable text without blanks around it`},
		{strings.Repeat("|", 300), `1:1: invalid header option: "` + strings.Repeat("|", 176) + `..., want YAML`},
		{"name: &x y", `1:7: an anchor, want plain mappings, lists, text and numbers`},
		{"name: a\n...\nname: b", `1:1: a second document, want one`},
	} {
		_, err := parse(c.src)
		if got, want := fmt.Sprint(err), "pet: f:"+c.want; got != want {
			t.Errorf("%q:\n got %s\nwant %s", c.src, got, want)
		}
	}
}

// Ensure that no more of a file is read than is needed to refuse it.
func TestReadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, make([]byte, 100), 0o600); err != nil {
		t.Fatal(err)
	}
	if b, err := ReadFile(path, 10); err != nil || len(b) != 11 {
		t.Errorf("%d bytes, %v, want 11", len(b), err)
	}
	if _, err := ReadFile(path+"x", 10); !os.IsNotExist(err) {
		t.Errorf("error %v, want not found", err)
	}
}
