package strictyaml

import (
	"fmt"

	"github.com/goccy/go-yaml/token"
)

// Limits that keep the cost of parsing in proportion to the size of the file: the parser goes down one call per level
// and, in block style, per key of a mapping, and moves all tokens that follow a value left out.
const (
	MaxDepth  = 20  // mappings and lists in each other
	MaxKeys   = 100 // of a mapping in block style
	MaxAbsent = 100 // values left out
)

// extras are the parts of YAML that plain data has no use for.
var extras = map[token.Type]string{
	token.AnchorType:     "an anchor",
	token.AliasType:      "an alias",
	token.TagType:        "a tag",
	token.MergeKeyType:   "a merge key",
	token.MappingKeyType: "a key marked by ?",
	token.DirectiveType:  "a directive",
}

// block is a mapping or list in block style that is open: where it is indented, and its keys so far.
type block struct{ column, keys int }

// flow is a mapping or list in brackets that is open. keyed: its last item has a colon.
type flow struct{ mapping, keyed bool }

// scan goes through the tokens before the parser does.
type scan struct {
	blocks []block
	flows  []flow
	absent int // values left out
}

// checkTokens returns where tokens have extras or pass a limit and what is wrong there, or nil.
func checkTokens(tokens token.Tokens) (*token.Position, string) {
	var s scan
	list := make(token.Tokens, 0, len(tokens))
	for _, t := range tokens {
		if t.Type != token.CommentType {
			list = append(list, t)
		}
	}
	none := &token.Token{Position: &token.Position{}}
	for i, t := range list {
		before, after := none, none
		if i > 0 {
			before = list[i-1]
		}
		if i+1 < len(list) {
			after = list[i+1]
		}
		if what := extras[t.Type]; what != "" {
			return t.Position, what + ", want plain mappings, lists, text and numbers"
		}
		s.step(before, t, after)
		if what := s.tooMuch(); what != "" {
			return t.Position, what
		}
	}
	return nil, ""
}

func (s *scan) tooMuch() string {
	switch last := len(s.blocks) - 1; {
	case len(s.blocks)+len(s.flows) > MaxDepth:
		return fmt.Sprintf("nested more than %d deep, want less", MaxDepth)
	case last >= 0 && s.blocks[last].keys > MaxKeys:
		return fmt.Sprintf("a mapping of more than %d keys, want less", MaxKeys)
	case s.absent > MaxAbsent:
		return fmt.Sprintf("more than %d values left out, want them given", MaxAbsent)
	}
	return ""
}

// step takes t into account.
func (s *scan) step(before, t, after *token.Token) {
	in := len(s.flows) > 0
	switch t.Type {
	case token.MappingStartType, token.SequenceStartType:
		s.flows = append(s.flows, flow{mapping: t.Type == token.MappingStartType})
	case token.CollectEntryType:
		s.endItem(before)
	case token.MappingEndType, token.SequenceEndType:
		s.endItem(before)
		s.flows = s.flows[:max(len(s.flows)-1, 0)]
	case token.SequenceEntryType:
		s.value(t, t.Position.Column, after)
		s.enter(t.Position.Column, 0)
	case token.MappingValueType:
		s.value(t, before.Position.Column, after)
		if in {
			s.flows[len(s.flows)-1].keyed = true
		} else {
			s.enter(before.Position.Column, 1)
		}
	}
}

// endItem counts an item of a flow mapping that is a key only.
func (s *scan) endItem(before *token.Token) {
	if len(s.flows) == 0 {
		return
	}
	f := &s.flows[len(s.flows)-1]
	if f.mapping && !f.keyed && before.Type != token.MappingStartType {
		s.absent++
	}
	f.keyed = false
}

// value counts a value left out after t, a colon or dash of something at column.
func (s *scan) value(t *token.Token, column int, after *token.Token) {
	switch after.Type {
	case token.UnknownType, token.CollectEntryType, token.MappingEndType, token.SequenceEndType,
		token.DocumentHeaderType, token.DocumentEndType:
		s.absent++
		return
	}
	p := after.Position
	// may start at the column of its key
	listOf := t.Type == token.MappingValueType && after.Type == token.SequenceEntryType
	if len(s.flows) == 0 && p.Line > t.Position.Line && (p.Column < column || p.Column == column && !listOf) {
		s.absent++
	}
}

// enter closes what is indented further than column, and counts keys at column.
func (s *scan) enter(column, keys int) {
	open := s.blocks
	for len(open) > 0 && open[len(open)-1].column > column {
		open = open[:len(open)-1]
	}
	if len(open) == 0 || open[len(open)-1].column < column {
		open = append(open, block{column: column})
	}
	open[len(open)-1].keys += keys
	s.blocks = open
}
