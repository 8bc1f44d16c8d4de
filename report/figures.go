package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Table is a table of figures. A cell is a string, a json.Number, a bool, or nil where there is nothing to say.
type Table struct {
	Title string   `json:"title"`
	Head  []string `json:"head"`
	Rows  [][]any  `json:"rows"`
}

// member is a name of an object, with its value: those of documents keep their order.
type member struct {
	name  string
	value any // string, json.Number, bool, nil, []member or []any
}

// Figures returns the figures of a document of --json as tables: one for each list of objects in it, with a row for
// each object, and a first one of what stands in no list. Columns are named as in the document. What its schema is, and
// the name of the experiment, are no figures.
func Figures(doc any) ([]Table, error) {
	text, err := json.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("report: figures: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	root, err := ordered(d)
	if err != nil {
		return nil, fmt.Errorf("report: figures: %w", err)
	}
	f := &figures{}
	if object, ok := root.([]member); ok {
		object = slices.DeleteFunc(object, func(m member) bool { return m.name == "schema" || m.name == "experiment" })
		f.object("all", nil, nil, object)
	}
	for _, t := range f.tables {
		t.square()
	}
	list := make([]Table, len(f.tables))
	for i, t := range f.tables {
		list[i] = t.Table
	}
	return list, nil
}

// ordered reads one value.
func ordered(d *json.Decoder) (any, error) {
	tok, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch tok {
	case json.Delim('{'):
		object := []member{}
		for d.More() {
			name, bad := d.Token()
			if bad != nil {
				return nil, bad
			}
			value, bad := ordered(d)
			if bad != nil {
				return nil, bad
			}
			object = append(object, member{fmt.Sprint(name), value})
		}
		_, err = d.Token()
		return object, err
	case json.Delim('['):
		list := []any{}
		for d.More() {
			value, bad := ordered(d)
			if bad != nil {
				return nil, bad
			}
			list = append(list, value)
		}
		_, err = d.Token()
		return list, err
	}
	return tok, nil
}

// figures gathers tables.
type figures struct{ tables []*sparse }

// sparse is a table whose rows may have other columns than those before.
type sparse struct {
	Table
	cells []map[string]any
}

// named returns the table of a title, which is made if there is none.
func (f *figures) named(title string) *sparse {
	for _, t := range f.tables {
		if t.Title == title {
			return t
		}
	}
	f.tables = append(f.tables, &sparse{Table: Table{Title: title}})
	return f.tables[len(f.tables)-1]
}

// object adds a row to the table of a title: names and values of what it is in, and its own. Lists of objects in it are
// tables of their own.
func (f *figures) object(title string, head []string, of []any, object []member) {
	scalars, lists := flat("", object)
	if len(scalars) > 0 {
		f.named(title).add(head, of, scalars)
	}
	for _, s := range scalars {
		if text, ok := s.value.(string); ok && !slices.Contains(head, s.name) {
			head, of = append(slices.Clip(head), s.name), append(slices.Clip(of), any(text))
		}
	}
	for _, l := range lists {
		for i, x := range l.value.([]any) {
			inner, ok := x.([]member)
			if !ok {
				inner = []member{{"value", x}}
			}
			under, in := head, of
			if len(head) == 0 && title != "all" { // nothing else says in which of several it is
				under, in = []string{title}, []any{json.Number(fmt.Sprint(i))}
			}
			f.object(l.name, under, in, inner)
		}
	}
}

// flat returns what stands in an object, with names of objects in it before those of theirs, and its lists of objects.
func flat(before string, object []member) (scalars, lists []member) {
	for _, m := range object {
		m.name = before + m.name
		switch x := m.value.(type) {
		case []member:
			s, l := flat(m.name+".", x)
			scalars, lists = append(scalars, s...), append(lists, l...)
		case []any:
			if slices.ContainsFunc(x, func(v any) bool { _, is := v.([]member); return is }) {
				lists = append(lists, m)
			} else {
				m.value = joined(x)
				scalars = append(scalars, m)
			}
		default:
			scalars = append(scalars, m)
		}
	}
	return scalars, lists
}

// joined says a list in one cell.
func joined(list []any) string {
	words := make([]string, len(list))
	for i, x := range list {
		if inner, ok := x.([]any); ok {
			words[i] = "(" + joined(inner) + ")"
		} else {
			words[i] = cellText(x)
		}
	}
	return strings.Join(words, ", ")
}

// add adds a row.
func (t *sparse) add(head []string, of []any, scalars []member) {
	row := map[string]any{}
	put := func(name string, value any) {
		if !slices.Contains(t.Head, name) {
			t.Head = append(t.Head, name)
		}
		row[name] = value
	}
	for i, name := range head {
		put(name, of[i])
	}
	for _, s := range scalars {
		put(s.name, s.value)
	}
	t.cells = append(t.cells, row)
}

// square gives all rows all columns.
func (t *sparse) square() {
	for _, cells := range t.cells {
		row := make([]any, len(t.Head))
		for i, name := range t.Head {
			row[i] = cells[name]
		}
		t.Rows = append(t.Rows, row)
	}
}
