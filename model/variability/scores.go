package variability

import (
	"fmt"
	"math"
	"strings"

	"github.com/trainyard/trainyard/internal/csvtable"
	"github.com/trainyard/trainyard/internal/suggest"
)

// Bounds of a PM score. They keep products and squares of scores finite; the largest one published is 3.6.
const (
	MinScore = 1e-6
	MaxScore = 1e6
)

// Limits on a table of scores.
const (
	MaxGPUs    = 1 << 17
	MaxClasses = 64
)

// GPU is what a table calls a GPU.
type GPU struct {
	Name string // a UUID, a number, ...; unique in a table
	Node string // "" = unknown
}

// Scores is a table of PM scores. A score is the time an iteration takes on a GPU over the time it takes on the median
// GPU, for an application of a class: 1 is the median, larger is slower. A synchronous gang runs at the largest score
// of its GPUs.
//
// Only ratios within a class matter to bins and placement: multiplying a class by a constant changes neither.
type Scores struct {
	Name    string      // what errors call the table, such as its file
	GPUs    []GPU       // names are unique
	Classes []string    // from the most sensitive on; unique
	PM      [][]float64 // PM[c][g], in MinScore..MaxScore; len(PM) == len(Classes), len(PM[c]) == len(GPUs)
}

// Validate checks everything said of the fields and names the first that is wrong.
func (s *Scores) Validate() error {
	if len(s.GPUs) == 0 || len(s.GPUs) > MaxGPUs {
		return s.fail("%d GPUs, want 1..%d", len(s.GPUs), MaxGPUs)
	}
	if len(s.Classes) == 0 || len(s.Classes) > MaxClasses || len(s.PM) != len(s.Classes) {
		return s.fail("%d classes and scores for %d, want as many, in 1..%d", len(s.Classes), len(s.PM), MaxClasses)
	}
	named := make(map[string]bool, len(s.GPUs))
	for _, g := range s.GPUs {
		switch {
		case !wordOK(g.Name):
			return s.fail("GPU %s, want %s", csvtable.Quote(g.Name), wantedWord)
		case g.Node != "" && !wordOK(g.Node):
			return s.fail("node %s of GPU %s, want %s", csvtable.Quote(g.Node), csvtable.Quote(g.Name), wantedWord)
		case named[g.Name]:
			return s.fail("GPU %s twice, want it once", csvtable.Quote(g.Name))
		}
		named[g.Name] = true
	}
	for c, class := range s.Classes {
		if err := s.validateClass(c, class); err != nil {
			return err
		}
	}
	return nil
}

func (s *Scores) validateClass(c int, class string) error {
	for _, earlier := range s.Classes[:c] {
		if earlier == class {
			return s.fail("class %s twice, want it once", csvtable.Quote(class))
		}
	}
	if !wordOK(class) {
		return s.fail("class %s, want %s", csvtable.Quote(class), wantedWord)
	}
	if len(s.PM[c]) != len(s.GPUs) {
		return s.fail("class %s has %d scores, want one for each of %d GPUs", csvtable.Quote(class), len(s.PM[c]),
			len(s.GPUs))
	}
	for g, pm := range s.PM[c] {
		if math.IsNaN(pm) || pm < MinScore || pm > MaxScore {
			return s.fail("class %s, GPU %s: score %v, want a number in %v..%v",
				csvtable.Quote(class), csvtable.Quote(s.GPUs[g].Name), pm, MinScore, MaxScore)
		}
	}
	return nil
}

func (s *Scores) fail(format string, args ...any) error {
	return fmt.Errorf("variability: %s: %s", s.Name, fmt.Sprintf(format, args...))
}

// Class returns the number of the class called name. The error lists the classes there are.
func (s *Scores) Class(name string) (int, error) {
	for c, class := range s.Classes {
		if class == name {
			return c, nil
		}
	}
	return 0, s.fail("no class %s%s, want one of %s", csvtable.Quote(name), suggest.Hint(name, s.Classes),
		strings.Join(s.Classes, ", "))
}

// Select returns the table of the GPUs called names, in that order, each once. A GPU without scores is an error:
// whoever would rather assume something of it must say so, by adding it.
func (s *Scores) Select(names []string) (*Scores, error) {
	at := make(map[string]int, len(s.GPUs))
	for g := range s.GPUs {
		at[s.GPUs[g].Name] = g
	}
	out := &Scores{Name: s.Name, Classes: s.Classes, PM: make([][]float64, len(s.Classes))}
	for _, name := range names {
		g, ok := at[name]
		if !ok {
			return nil, s.fail("no scores of GPU %s, want a row for each GPU of the cluster", csvtable.Quote(name))
		}
		out.GPUs = append(out.GPUs, s.GPUs[g])
		for c := range s.PM {
			out.PM[c] = append(out.PM[c], s.PM[c][g])
		}
	}
	return out, out.Validate()
}

// SameOrder refuses a table b that has a GPU of s in another row: the row says which GPU of a cluster it is. nil is in
// any order.
func (s *Scores) SameOrder(b *Scores) error {
	if s == nil || b == nil || s == b {
		return nil
	}
	row := make(map[string]int, len(s.GPUs))
	for g := range s.GPUs {
		row[s.GPUs[g].Name] = g
	}
	for g := range b.GPUs {
		if other, ok := row[b.GPUs[g].Name]; ok && other != g {
			return b.fail("GPU %s is row %d, in %s row %d, want GPUs in the same order", csvtable.Quote(b.GPUs[g].Name),
				g+1, s.Name, other+1)
		}
	}
	return nil
}
