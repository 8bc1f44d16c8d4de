package cluster

import (
	"strconv"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/trainyard/trainyard/internal/strictyaml"
	"github.com/trainyard/trainyard/sched"
)

// power reads what a node draws.
func (r *reader) power(n ast.Node, spec *sched.NodeSpec) {
	wake, linear := 0.0, ""
	var curve ast.Node
	figure := func(dst *sched.Watts) func(string, ast.Node) {
		read := strictyaml.Figure(r.Reader, dst)
		return func(key string, n ast.Node) { linear = key; read(key, n) }
	}
	r.Mapping(n, "power", []strictyaml.Field{
		strictyaml.Key("idle_w", figure(&spec.IdleW)),
		strictyaml.Key("busy_gpu_w", figure(&spec.BusyGPUW)),
		strictyaml.Key("sleep_w", strictyaml.Figure(r.Reader, &spec.SleepW)),
		strictyaml.Key("curve", func(_ string, n ast.Node) { curve = n; r.curve(n, spec) }),
		strictyaml.Key("wake_seconds", strictyaml.Figure(r.Reader, &wake)),
	})
	if curve != nil && linear != "" {
		r.Fail(curve, "both %s and curve, want one of them", linear)
	}
	spec.Wake = sched.Seconds(wake)
}

// curve reads power by use: a table if its first key is a number, else the shape with three figures.
func (r *reader) curve(n ast.Node, spec *sched.NodeSpec) {
	if m, ok := n.(*ast.MappingNode); ok && len(m.Values) > 0 {
		if _, isTable := use(m.Values[0].Key.GetToken()); isTable {
			r.table(n, spec)
			return
		}
	}
	r.Mapping(n, "curve", []strictyaml.Field{
		strictyaml.Key("idle", strictyaml.Figure(r.Reader, &spec.IdleW)),
		strictyaml.Key("scale", strictyaml.Figure(r.Reader, &spec.Curve.Scale)),
		strictyaml.Key("exponent", strictyaml.Figure(r.Reader, &spec.Curve.Exponent)),
	})
	r.check(n, spec)
}

// table reads watts by use.
func (r *reader) table(n ast.Node, spec *sched.NodeSpec) {
	r.Each(n, "curve", "watts by use", func(key *token.Token, n ast.Node) {
		u, ok := use(key)
		if !ok {
			r.FailAt(key.Position, "use %s, want a number from 0 to 1", strictyaml.Quote(key.Value))
			return
		}
		p := sched.PowerPoint{Use: u}
		strictyaml.Figure(r.Reader, &p.Watts)(key.Value, n)
		spec.Curve.Points = append(spec.Curve.Points, p)
	})
	if r.Err() == nil {
		spec.IdleW = spec.Curve.Points[0].Watts
	}
	r.check(n, spec)
}

// check fails at n if the power is not one a node can have.
func (r *reader) check(n ast.Node, spec *sched.NodeSpec) {
	s := sched.NodeSpec{GPUs: 1, IdleW: spec.IdleW, Curve: spec.Curve}
	if err := s.Validate(); err != nil {
		r.Fail(n, "%v", err)
	}
}

// use returns the use that a key of a table names.
func use(key *token.Token) (float64, bool) {
	u, err := strconv.ParseFloat(key.Value, 64)
	return u, err == nil && u >= 0 && u <= 1
}
