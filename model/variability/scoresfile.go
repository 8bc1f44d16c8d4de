package variability

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/trainyard/trainyard/internal/csvtable"
)

// Columns of tables of scores. A class is called by what follows the prefix: pm_classA is class A.
const (
	columnGPU   = "gpu"
	columnNode  = "node"
	prefixPM    = "pm_class"
	prefixSF    = "sf_class" // binned scores: they follow from the others and are read over
	prefixPlain = "PerfVar_class"
)

// plainIgnored are the columns of a plain table, besides those with scores, that mean nothing here.
var plainIgnored = map[string]bool{"": true, "GPU_ID": true, "Local_GPU_ID": true, "IP_addr": true, "IN_USE": true,
	"JOB_IDS": true}

// ReadScores reads a table of scores, one row for each GPU in order of the numbers that they get. Its header says
// which of two kinds it is:
//
//	gpu,node,pm_classA,pm_classB[,sf_classA,sf_classB]
//	,GPU_ID,GPU_UUID,Local_GPU_ID,Node_ID,IP_addr,IN_USE,JOB_IDS,PerfVar_classA,PerfVar_classB
//
// Columns may come in any order, and classes in any number: theirs is the order of the columns. Of the second kind, the
// list of nodes of the released code, only GPU_UUID, Node_ID and the scores are taken. Every GPU needs a score in every
// class. Errors name the file as name, the line, and what was wanted instead.
func ReadScores(r io.Reader, name string) (*Scores, error) {
	t, err := openTable(r, name)
	if err != nil {
		return nil, err
	}
	cols, err := scoreColumnsOf(t)
	if err != nil {
		return nil, err
	}
	s := &Scores{Name: name, Classes: cols.classes, PM: make([][]float64, len(cols.classes))}
	lines := make(map[string]int) // of each GPU
	if err := t.Each(func() error { return cols.add(t, s, lines, t.Row) }); err != nil {
		return nil, err
	}
	if len(s.GPUs) == 0 {
		return nil, t.Fail("no GPUs, want a row for each")
	}
	return s, nil
}

// scoreColumns says where in a table the scores are.
type scoreColumns struct {
	gpu, node int
	classes   []string
	at        []int // of each class
}

func scoreColumnsOf(t *csvtable.Table) (*scoreColumns, error) {
	prefix, names := prefixPM, []string{columnGPU, columnNode}
	plain := t.Find("GPU_UUID")[0] >= 0
	if plain {
		prefix, names = prefixPlain, []string{"GPU_UUID", "Node_ID"}
	}
	at, err := t.Need(names...)
	if err != nil {
		return nil, err
	}
	cols := &scoreColumns{gpu: at[0], node: at[1]}
	for i, column := range t.Header {
		class, isScore := strings.CutPrefix(column, prefix)
		ignored := plain && plainIgnored[column] || !plain && strings.HasPrefix(column, prefixSF)
		switch {
		case i == cols.gpu || i == cols.node || ignored:
		case !isScore:
			return nil, t.Fail("unknown column %s, want %s and scores in %s...", csvtable.Quote(column),
				strings.Join(names, ", "), prefix)
		case !wordOK(class):
			return nil, t.Fail("column %s, want %s behind %s", csvtable.Quote(column), wantedWord, prefix)
		case len(cols.classes) == MaxClasses:
			return nil, t.Fail("more than %d classes, want less", MaxClasses)
		default:
			cols.classes, cols.at = append(cols.classes, class), append(cols.at, i)
		}
	}
	if len(cols.classes) == 0 {
		return nil, t.Fail("no scores, want a column %sA or the like", prefix)
	}
	return cols, nil
}

// add appends the GPU of a row to s.
func (cols *scoreColumns) add(t *csvtable.Table, s *Scores, lines map[string]int, row []string) error {
	g := GPU{strings.Clone(row[cols.gpu]), strings.Clone(row[cols.node])}
	switch twin := lines[g.Name]; {
	case twin > 0:
		return t.Fail("GPU %s, want each once: it is in line %d too", csvtable.Quote(g.Name), twin)
	case !wordOK(g.Name):
		return t.Fail("GPU %s, want %s", csvtable.Quote(g.Name), wantedWord)
	case g.Node != "" && !wordOK(g.Node):
		return t.Fail("node %s, want %s", csvtable.Quote(g.Node), wantedWord)
	case len(s.GPUs) == MaxGPUs:
		return t.Fail("more than %d GPUs, want less", MaxGPUs)
	}
	lines[g.Name] = t.Line()
	s.GPUs = append(s.GPUs, g)
	for c, i := range cols.at {
		pm, err := number(row[i], MinScore, MaxScore)
		if err != nil {
			return t.Fail("%s %s of GPU %s, want %w", t.Header[i], csvtable.Quote(row[i]), csvtable.Quote(g.Name), err)
		}
		s.PM[c] = append(s.PM[c], pm)
	}
	return nil
}

// WriteCSV writes s as ReadScores reads it, with the columns gpu, node and one pm_class... for each class. Scores are
// written with as many digits as it takes to read the same number back.
func (s *Scores) WriteCSV(w io.Writer) error {
	if err := s.Validate(); err != nil {
		return err
	}
	out := csv.NewWriter(w)
	row := []string{columnGPU, columnNode}
	for _, class := range s.Classes {
		row = append(row, prefixPM+class)
	}
	_ = out.Write(row) // the first error sticks until Flush
	for g := range s.GPUs {
		row = append(row[:0], s.GPUs[g].Name, s.GPUs[g].Node)
		for c := range s.PM {
			row = append(row, strconv.FormatFloat(s.PM[c][g], 'g', -1, 64))
		}
		_ = out.Write(row)
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("variability: write: %w", err)
	}
	return nil
}
