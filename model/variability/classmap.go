package variability

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/trainyard/trainyard/internal/csvtable"
	"github.com/trainyard/trainyard/internal/suggest"
)

// ClassMap says of which class models are. Case, '-' and '_' in the name of a model do not matter. The zero value knows
// no model.
type ClassMap struct{ class map[string]string } // by plain name

// Class returns the class of a model, and whether the model is on the map.
func (m *ClassMap) Class(model string) (class string, known bool) {
	class, known = m.class[plain(model)]
	return class, known
}

// plain returns the name of a model in lower case without '-' and '_'.
func plain(model string) string {
	return strings.Map(func(c rune) rune {
		if c == '-' || c == '_' {
			return -1
		}
		return c
	}, strings.ToLower(model))
}

// maxModels bounds the rows of a map.
const maxModels = 1 << 16

// ReadClassMap reads which models are of which of classes, which are in order from the most sensitive on. Its header
// says which of two kinds it is:
//
//	model,class
//	model,seconds,dram_util,peak_fu_util
//
// The first names the class of each model, once. The second is what a profiler says of the kernels of each model, in
// percent of the peak, a row for each kernel or one for all: the models are put into as many classes as there are
// by Weighted and Train. Errors name the file as name, the line, and what was wanted instead.
func ReadClassMap(r io.Reader, name string, classes []string) (*ClassMap, error) {
	t, err := openTable(r, name)
	if err != nil {
		return nil, err
	}
	if t.Find("class")[0] >= 0 {
		return readNamed(t, classes)
	}
	return readProfiled(t, name, classes)
}

// columns returns where the columns are, all of which are there, and no others.
func columns(t *csvtable.Table, names ...string) ([]int, error) {
	at, err := t.Need(names...)
	if err == nil && len(t.Header) > len(names) {
		err = t.Fail("%d columns, want the columns %s", len(t.Header), strings.Join(names, ", "))
	}
	return at, err
}

// each calls f with each row, of which there is at least one.
func each(t *csvtable.Table, most int, f func(row []string) error) error {
	for rows := 0; ; rows++ {
		more, err := t.Next()
		switch {
		case err == nil && !more && rows == 0:
			err = t.Fail("no rows, want at least one")
		case err == nil && !more:
			return nil
		case err == nil && rows == most:
			err = t.Fail("more than %d rows, want less", most)
		case err == nil:
			err = f(t.Row)
		}
		if err != nil {
			return err
		}
	}
}

func readNamed(t *csvtable.Table, classes []string) (*ClassMap, error) {
	at, err := columns(t, "model", "class")
	if err != nil {
		return nil, err
	}
	m, lines := &ClassMap{make(map[string]string)}, make(map[string]int)
	err = each(t, maxModels, func(row []string) error {
		model, class := plain(row[at[0]]), slices.Index(classes, row[at[1]])
		switch {
		case !wordOK(row[at[0]]) || model == "":
			return t.Fail("model %s, want %s", csvtable.Quote(row[at[0]]), wantedWord)
		case lines[model] > 0:
			return t.Fail("model %s, want each once: it is in line %d too", csvtable.Quote(row[at[0]]), lines[model])
		case class < 0:
			return t.Fail("class %s%s, want one of %s", csvtable.Quote(row[at[1]]), suggest.Hint(row[at[1]], classes),
				strings.Join(classes, ", "))
		}
		m.class[model], lines[model] = classes[class], t.Line()
		return nil
	})
	return m, err
}

// readProfiled trains a classifier on all models of a table of kernels, called name by errors.
func readProfiled(t *csvtable.Table, name string, classes []string) (*ClassMap, error) {
	at, err := columns(t, "model", "seconds", "dram_util", "peak_fu_util")
	if err != nil {
		return nil, err
	}
	kernels := make(map[string][]Kernel)
	var models []string // in order of the file
	err = each(t, maxModels, func(row []string) error {
		model := plain(row[at[0]])
		if !wordOK(row[at[0]]) || model == "" {
			return t.Fail("model %s, want %s", csvtable.Quote(row[at[0]]), wantedWord)
		}
		k, wrong := kernel(t, row, at[1:])
		if kernels[model] == nil {
			models = append(models, model)
		}
		kernels[model] = append(kernels[model], k)
		return wrong
	})
	if err != nil {
		return nil, err
	}
	apps := make([]Features, len(models))
	for i, model := range models {
		if apps[i], err = Weighted(kernels[model]); err != nil {
			return nil, fmt.Errorf("variability: %s: model %s: kernels that take no time, want some that do", name,
				csvtable.Quote(model))
		}
	}
	c, err := Train(apps, len(classes))
	if err != nil {
		return nil, fmt.Errorf("variability: %s: %s", name, strings.TrimPrefix(err.Error(), "variability: "))
	}
	m := &ClassMap{make(map[string]string)}
	for i, model := range models {
		m.class[model] = classes[c.Class(apps[i])]
	}
	return m, nil
}

// kernel reads seconds, dram_util and peak_fu_util, which are at the given columns.
func kernel(t *csvtable.Table, row []string, at []int) (Kernel, error) {
	var x [3]float64
	for i, most := range []float64{1e9, 100, 100} {
		var err error
		if x[i], err = upTo(row[at[i]], most); err != nil {
			return Kernel{}, t.Fail("%s %s, want %w", t.Header[at[i]], csvtable.Quote(row[at[i]]), err)
		}
	}
	return Kernel{x[0], Features{x[1], x[2]}}, nil
}
