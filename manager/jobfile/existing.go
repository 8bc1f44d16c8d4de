package jobfile

import (
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/trainyard/trainyard/internal/strictyaml"
	"github.com/trainyard/trainyard/internal/suggest"
	"github.com/trainyard/trainyard/sched"
)

// Existing is a job that a job waits for and that is not in its list.
type Existing struct {
	Name string // or its number
	How  string // one of the words of hows: how it must end
}

// How a job must end that another waits for.
const (
	AfterAny  = "any"  // in some way
	AfterOK   = "ok"   // finished
	AfterFail = "fail" // otherwise than finished
)

var hows = []string{AfterAny, AfterOK, AfterFail}

// after is a job that an entry waits for.
type after struct {
	name, how string
	at        ast.Node
}

// after reads a list of jobs, each perhaps with how it must end.
func (r *reader) after(key string, n ast.Node, dst *[]after) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		r.Fail(n, "%s, want a list of jobs, as in [job-1, ok:job-2, 12]", strictyaml.Describe(key, n))
		return
	}
	seen := make(map[string]bool)
	for _, item := range seq.Values {
		text, plain := jobText(item)
		a := after{name: text, how: AfterAny, at: item}
		if how, name, given := strings.Cut(text, ":"); given {
			a.how, a.name = how, name
		}
		switch {
		case !plain || a.name == "":
			r.Fail(item, "%s, want the name or number of a job", strictyaml.Describe(key, item))
		case !slices.Contains(hows, a.how):
			r.Fail(item, "after %s, want any:JOB, ok:JOB or fail:JOB", strictyaml.Quote(text))
		case seen[a.name]:
			r.Fail(item, "after %s given again, want it once", strictyaml.Quote(a.name))
		case IsNumber(a.name) && !isJobID(a.name):
			r.Fail(item, "after %s, want the number of a job, as ps lists it", strictyaml.Quote(a.name))
		}
		if r.Err() != nil {
			return
		}
		seen[a.name] = true
		*dst = append(*dst, a)
	}
}

// jobText returns the text of an item. The parser takes ok:7 in brackets for a mapping.
func jobText(item ast.Node) (string, bool) {
	if m, ok := item.(*ast.MappingNode); ok && len(m.Values) == 1 {
		item = m.Values[0]
	}
	v, ok := item.(*ast.MappingValueNode)
	if !ok {
		return strictyaml.Plain(item)
	}
	how, plain := strictyaml.Plain(v.Key)
	name, plain2 := strictyaml.Plain(v.Value)
	return how + ":" + name, plain && plain2
}

// isJobID reports whether s is written as numbers of jobs are.
func isJobID(s string) bool {
	n, err := strconv.ParseUint(s, 10, 31)
	return err == nil && strconv.FormatUint(n, 10) == s
}

// exists takes a job that an entry waits for and that is not in the list; it is refused where there are no others.
func (r *reader) exists(p *plan, a after) (x Existing) {
	switch {
	case !r.others:
		r.Fail(a.at, "after %s%s, want the name of a job", strictyaml.Quote(a.name), suggest.Hint(a.name, p.known()))
	case !IsNumber(a.name) && misnamed(a.name) != "":
		r.Fail(a.at, "after %s%s, want the number or name of a job, or of an array for all its tasks",
			strictyaml.Quote(a.name), suggest.Hint(a.name, p.known()))
	}
	return Existing{Name: a.name, How: a.how}
}

// tie notes how jobs must end that another waits for.
func tie(t *sched.Ties, how string, jobs ...sched.JobID) {
	switch how {
	case AfterOK:
		t.AfterOK = append(t.AfterOK, jobs...)
	case AfterFail:
		t.AfterFail = append(t.AfterFail, jobs...)
	}
}

// Wait has the job wait for others that exist, those that each of Existing names. The slices of its Spec are new: alike
// jobs share them.
func (j *Job) Wait(ids [][]sched.JobID) {
	s := &j.Spec
	s.After, s.Ties.AfterOK, s.Ties.AfterFail = slices.Clone(s.After), slices.Clone(s.Ties.AfterOK),
		slices.Clone(s.Ties.AfterFail)
	for i, of := range ids {
		s.After = append(s.After, of...)
		tie(&s.Ties, j.Existing[i].How, of...)
	}
	slices.Sort(s.After)
	s.After = slices.Compact(s.After)
}
