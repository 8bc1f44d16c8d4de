package place_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/internal/policytest"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/place"
)

// Ensure that each example of testdata comes out as it did when someone last read and understood it.
//
// A file says what it ensures, then:
//
//	nodes COUNTxGPUS [type=T] [rack=N] [cpus=N] [memory=GB]     nodes n0, n1, ... join
//	node NAME GPUS [type=T] [rack=N] [cpus=N] [memory=GB]       one node joins; rack 0, nothing counted, if not said
//	book GPUS [cpus=N] [memory=GB]                              others hold GPUs such as 0-2,5, with so much per GPU
//	score X GPUS                                                binned score of GPUs such as 0-2,5; 1 if not said
//	place RULE n=N [model=M] [types=T,T] [cpus=N] [memory=GB]   a gang of N asks, with so much per GPU; it books nothing
//	place pal n=N across=L [tolerance=X] ...                    L: locality penalty
//
// place prints the nodes by type and number of free GPUs, those that lack CPUs or memory for even one GPU of the gang,
// and the GPUs in the order in which they are taken, by node, or "no place". GPUs are numbered as nodes join. The rules
// are those of placers, and pm-first and pal, for which it prints the slowest score, too.
func TestPolicies(t *testing.T) {
	policytest.Run(t, func() policytest.Handler { return (&placing{}).do })
}

// placing is the cluster of one data file.
type placing struct {
	v     sched.View
	types []string  // names by TypeID
	sf    []float64 // by GPU; as many as the cluster has
}

func (p *placing) do(c *policytest.Command) string {
	switch c.Verb {
	case "nodes":
		count, gpus, _ := strings.Cut(c.Word("COUNTxGPUS"), "x")
		spec := p.node(c, gpus)
		for range c.Int("count", count, 1) {
			p.join(fmt.Sprint("n", len(p.v.Nodes)), spec)
		}
	case "node":
		name := c.Word("a name")
		p.join(name, p.node(c, c.Word("GPUs")))
	case "book":
		gpus := p.gpus(c, c.Word("GPUs"))
		p.v.Jobs = append(p.v.Jobs, sched.Job{Spec: demand(c), Target: gpus})
	case "score":
		x := c.Float("score", c.Word("score"))
		for _, g := range p.gpus(c, c.Word("GPUs")) {
			p.sf[g] = x
		}
	case "place":
		return p.place(c)
	default:
		c.Fail("no such command")
	}
	return ""
}

func (p *placing) node(c *policytest.Command, gpus string) sched.NodeSpec {
	return sched.NodeSpec{GPUs: c.Int("GPUs", gpus, 1), Type: p.typ(c.Text("type")), Rack: int32(c.Number("rack", 0)),
		CPUs: float32(c.Number("cpus", 0)), MemoryGB: float32(c.Number("memory", 0))}
}

// typ numbers types in the order in which they are named.
func (p *placing) typ(name string) sched.TypeID {
	if !slices.Contains(p.types, name) {
		p.types = append(p.types, name)
	}
	return sched.TypeID(slices.Index(p.types, name))
}

func (p *placing) join(name string, spec sched.NodeSpec) {
	spec.Name = name
	n := sched.NodeID(len(p.v.Nodes))
	p.v.Nodes = append(p.v.Nodes, sched.Node{Spec: spec, First: sched.GPUID(len(p.v.GPUs))})
	for range spec.GPUs {
		p.v.GPUs = append(p.v.GPUs, sched.GPU{Node: n})
		p.sf = append(p.sf, 1)
	}
}

// gpus reads a list of numbers and ranges, rising.
func (p *placing) gpus(c *policytest.Command, list string) (set []sched.GPUID) {
	next := 0
	for part := range strings.SplitSeq(list, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		g := c.Int("GPU", first, next)
		for next = c.Int("GPU", last, g) + 1; g < next; g++ {
			set = append(set, sched.GPUID(g))
		}
	}
	if next > len(p.v.GPUs) {
		c.Fail("GPU %d of %d", next-1, len(p.v.GPUs))
	}
	return set
}

func demand(c *policytest.Command) *sched.JobSpec {
	return &sched.JobSpec{CPUs: float32(c.Number("cpus", 0)), MemoryGB: float32(c.Number("memory", 0))}
}

func (p *placing) place(c *policytest.Command) string {
	rule, scores := p.rule(c)
	if rule == nil {
		c.Fail("no such rule")
	}
	n, spec := c.Int("n", c.Text("n"), 1), demand(c)
	spec.GPUs, spec.Model = sched.Rigid(n), c.Text("model")
	if types := c.Text("types"); types != "" {
		for t := range strings.SplitSeq(types, ",") {
			spec.Types = spec.Types.With(p.typ(t))
		}
	}
	j := sched.JobID(len(p.v.Jobs))
	p.v.Jobs = append(p.v.Jobs, sched.Job{Spec: spec})
	l := sched.NewLedger(&p.v)
	var b strings.Builder
	p.printFree(&b, l, j)
	set, ok := rule.Place(&p.v, l, j, n, nil)
	if rule.Fits(&p.v, l, j, n) != ok {
		c.Fail("Place says %v, Fits says otherwise", ok)
	}
	p.printSet(&b, set)
	if scores != nil && ok {
		fmt.Fprintln(&b, "slowest", scores.Slowest(0, set))
	}
	return b.String()
}

// rule returns the rule of a command, and the scores it goes by.
func (p *placing) rule(c *policytest.Command) (sched.Placer, *place.Scores) {
	switch name := c.Word("a rule"); name {
	case "pm-first":
		s := scoresOf(p.sf)
		return place.PMFirst{Scores: s}, s
	case "pal":
		s := scoresOf(p.sf)
		return place.PAL{Scores: s, Penalty: times(c.Float("across", c.Text("across"))),
			Tolerance: c.Number("tolerance", 0)}, s
	default:
		return placers[name], nil
	}
}

// printFree prints the nodes by type and number of free GPUs.
func (p *placing) printFree(b *strings.Builder, l *sched.Ledger, j sched.JobID) {
	for t := range l.Types() {
		var buckets, short []string
		for f := range l.MaxFree(sched.TypeID(t)) + 1 {
			var nodes []string
			for n := l.NextNode(sched.TypeID(t), f, 0); n != sched.None; n = l.NextNode(sched.TypeID(t), f, n+1) {
				nodes = append(nodes, p.v.Nodes[n].Spec.Name)
				if f > 0 && !l.Room(n, j, 1) {
					short = append(short, p.v.Nodes[n].Spec.Name)
				}
			}
			if nodes != nil {
				buckets = append(buckets, fmt.Sprintf("%d: %s", f, strings.Join(nodes, " ")))
			}
		}
		fmt.Fprintln(b, strings.TrimSpace(p.types[t]+" free"), strings.Join(buckets, ", "))
		if short != nil {
			fmt.Fprintln(b, "short of CPUs or memory:", strings.Join(short, " "))
		}
	}
}

// printSet prints a set in the order taken, a line for each node and a range for what is consecutive.
func (p *placing) printSet(b *strings.Builder, set []sched.GPUID) {
	if len(set) == 0 {
		b.WriteString("no place\n")
	}
	for i := 0; i < len(set); {
		node, sep := p.v.GPUs[set[i]].Node, ":"
		b.WriteString(p.v.Nodes[node].Spec.Name)
		for i < len(set) && p.v.GPUs[set[i]].Node == node {
			first := set[i]
			for i++; i < len(set) && set[i] == set[i-1]+1 && p.v.GPUs[set[i]].Node == node; {
				i++
			}
			fmt.Fprint(b, sep, " ", first)
			if set[i-1] > first {
				fmt.Fprint(b, "-", set[i-1])
			}
			sep = ","
		}
		b.WriteString("\n")
	}
}
