package report

import (
	"fmt"
	"slices"
)

// numbering gives names numbers in order of first use; "" stays.
type numbering struct {
	word  string
	known map[string]string
}

func (n *numbering) of(name string) string {
	if name == "" {
		return ""
	}
	if n.known == nil {
		n.known = map[string]string{}
	}
	if _, ok := n.known[name]; !ok {
		n.known[name] = fmt.Sprint(n.word, " ", len(n.known)+1)
	}
	return n.known[name]
}

// nameless returns r with numbers in place of names, and without command, facts and settings, which may name files.
func (r *Report) nameless() *Report {
	a := *r
	a.Command, a.Systems = nil, slices.Clone(r.Systems)
	a.Facts = slices.DeleteFunc(slices.Clone(r.Facts), func(f Fact) bool {
		return f.Name == "trace" || f.Name == "cluster"
	})
	user, model, class := numbering{word: "user"}, numbering{word: "model"}, numbering{word: "class"}
	for i := range a.Systems {
		s := &a.Systems[i]
		s.Settings = nil
		s.Jobs = slices.Clone(s.Jobs)
		for k := range s.Jobs {
			s.Jobs[k].Name = fmt.Sprint("job ", k)
		}
		if s.Timeline == nil {
			continue
		}
		t := *s.Timeline
		t.Types = nil
		t.Jobs, t.Nodes = slices.Clone(t.Jobs), slices.Clone(t.Nodes)
		for k := range t.Jobs {
			j := &t.Jobs[k]
			j.Name, j.User = fmt.Sprint("job ", k), user.of(j.User)
			j.Model, j.Class = model.of(j.Model), class.of(j.Class)
		}
		for k := range t.Nodes {
			t.Nodes[k].Name = fmt.Sprint("node ", k)
		}
		t.Rename(user.of)
		s.Timeline = &t
	}
	return &a
}
