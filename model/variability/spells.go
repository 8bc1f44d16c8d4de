package variability

import (
	"cmp"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/trainyard/trainyard/internal/csvtable"
	"github.com/trainyard/trainyard/sched"
)

// Spell is a time in which a GPU is slower than its scores say.
type Spell struct {
	GPU      int
	From, To sched.Time // To > From; sched.Never = it stays so
	Factor   float64    // an iteration takes so many times as long; in MinScore..MaxScore
}

// maxSpells bounds the rows of a table of spells.
const maxSpells = 1 << 20

// ReadSpells reads a table of spells of GPUs 0..gpus-1 with the columns gpu, from_s, to_s and factor, in any order:
//
//	gpu,from_s,to_s,factor
//	3,3600,10800,2.8
//	7,86400,,1.15
//
// Times are in seconds, rounded to nanoseconds; an empty to_s is for ever. Spells of one GPU do not overlap. They are
// returned in order of From, then of GPU. Errors name the file as name, the line, and what was wanted instead.
func ReadSpells(r io.Reader, name string, gpus int) ([]Spell, error) {
	t, err := openTable(r, name)
	if err != nil {
		return nil, err
	}
	at, err := columns(t, "gpu", "from_s", "to_s", "factor")
	if err != nil {
		return nil, err
	}
	s := spells{of: make(map[int][]lined)}
	err = each(t, maxSpells, func(row []string) error {
		return s.add(t, gpus, row[at[0]], row[at[1]], row[at[2]], row[at[3]])
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(s.list, func(a, b Spell) int { return cmp.Or(cmp.Compare(a.From, b.From), a.GPU-b.GPU) })
	return s.list, nil
}

// spells are those read so far, once in order of the rows, once by GPU in order of time.
type spells struct {
	list []Spell
	of   map[int][]lined
}

type lined struct {
	Spell
	line int
}

// add takes one row of a file.
func (s *spells) add(t *csvtable.Table, gpus int, gpu, from, to, factor string) error {
	x := Spell{To: sched.Never}
	var err error
	if x.GPU, err = strconv.Atoi(gpu); err != nil || x.GPU < 0 || x.GPU >= gpus {
		return t.Fail("gpu %s, want the number of one, 0..%d", csvtable.Quote(gpu), gpus-1)
	}
	if x.From, err = instant(from); err != nil {
		return t.Fail("from_s %s, want %w", csvtable.Quote(from), err)
	}
	if strings.TrimSpace(to) != "" {
		if x.To, err = instant(to); err != nil {
			return t.Fail("to_s %s, want %w, or nothing", csvtable.Quote(to), err)
		}
	}
	if x.To <= x.From {
		return t.Fail("to_s %s, want more than from_s %s", csvtable.Quote(to), csvtable.Quote(from))
	}
	if x.Factor, err = number(factor, MinScore, MaxScore); err != nil {
		return t.Fail("factor %s, want %w", csvtable.Quote(factor), err)
	}
	own := s.of[x.GPU]
	i, _ := slices.BinarySearchFunc(own, x.From, func(l lined, from sched.Time) int {
		return cmp.Compare(l.From, from)
	})
	for _, near := range own[max(0, i-1):min(len(own), i+1)] {
		if near.From < x.To && x.From < near.To {
			return t.Fail("GPU %d, want one spell at a time: line %d is at the same time", x.GPU, near.line)
		}
	}
	s.of[x.GPU] = slices.Insert(own, i, lined{x, t.Line()})
	s.list = append(s.list, x)
	return nil
}

// instant reads a time in seconds, at most a century; the error is what is wanted, alone.
func instant(text string) (sched.Time, error) {
	const century = 100 * 365.25 * 86400
	x, err := upTo(text, century)
	return sched.Time(sched.Seconds(x)), err
}
