package jobfile

import (
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/internal/strictyaml"
)

// timeLimit reads how long a job may run: a time, none, or a mapping that says more.
func (r *reader) timeLimit(key string, n ast.Node, t *task.Task) {
	t.TimeLimit, t.TimeWarn, t.TimeEach = 0, 0, false
	limit := func(dst *time.Duration) func(string, ast.Node) {
		return duration(r, dst, 1, task.MaxLimit, "more than 0s and at most 8760h")
	}
	if word, plain := strictyaml.Plain(n); plain && word == "none" {
		return
	}
	if _, ok := n.(*ast.MappingNode); !ok {
		limit(&t.TimeLimit)(key, n)
		return
	}
	r.Mapping(n, key, []strictyaml.Field{
		strictyaml.Key("max", func(_ string, n ast.Node) { limit(&t.TimeLimit)("time_limit max", n) }),
		strictyaml.Key("warn", func(_ string, n ast.Node) { limit(&t.TimeWarn)("time_limit warn", n) }),
		strictyaml.Key("each", func(key string, n ast.Node) { r.truth(key, n, &t.TimeEach) }),
	})
	switch {
	case r.Err() != nil:
	case t.TimeLimit == 0:
		r.Fail(n, "time_limit without max, want the time after which it is ended")
	case t.TimeWarn > t.TimeLimit:
		r.Fail(n, "time_limit warn %v, want at most its max of %v", t.TimeWarn, t.TimeLimit)
	}
}
