package variability

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/trainyard/trainyard/internal/csvtable"
	"github.com/trainyard/trainyard/internal/suggest"
)

// PublishedAcross is the locality penalty of a gang on several nodes, for every class, in the released code's default.
// It was swept from 1 to 3.
const PublishedAcross = 1.7

// Level is how far apart the two most distant GPUs of a gang are.
type Level uint8

// The levels, from near to far.
const (
	SameNode Level = iota
	SameRack       // on several nodes of one rack
	Across         // on several racks, or it is not known that there is but one
	levels
)

var levelNames = [levels]string{"node", "rack", "across"}

// String returns the word for l in files: node, rack or across.
func (l Level) String() string {
	if l < levels {
		return levelNames[l]
	}
	return fmt.Sprintf("level %d", uint8(l))
}

// anyone stands in a file for every model and class.
const anyone = "*"

// MaxPenalty bounds a locality penalty.
const MaxPenalty = 1000

// maxPenalties bounds the rows of a table of penalties.
const maxPenalties = 1 << 12

// Locality says how much slower a gang runs for the distance between its GPUs: an iteration takes Penalty times as long
// as it would on one node. The zero value knows no penalty: all are 1.
//
// Deviation: the paper knows two distances, inside a node and beyond, and one number; ours may depend on model or
// class, GPUs and three distances. TwoLevel is theirs.
type Locality struct {
	rows []penalty // by who, then by falling gpus
	near bool      // some row slows a gang on one node
}

// penalty is what is known of one model or class from a number of GPUs on. 0 = not said.
type penalty struct {
	who  string
	gpus int
	at   [levels]float64
}

// TwoLevel is 1 on one node and across, >= 1, anywhere else.
func TwoLevel(across float64) Locality {
	return Locality{rows: []penalty{{anyone, 1, [levels]float64{1, across, across}}}}
}

// Penalty returns how many times longer an iteration takes, >= 1. What is said of the model counts first, then what is
// said of the class, then what is said of everyone (*); within these, the row with the most GPUs that are not above
// gpus. Where that says nothing of level it is as on the next farther level that it speaks of, or else the next nearer
// one; but what is not said of one node is 1.
func (l Locality) Penalty(model, class string, gpus int, level Level) float64 {
	if level == SameNode && !l.near {
		return 1
	}
	for _, who := range [...]string{model, class, anyone} {
		i, _ := slices.BinarySearchFunc(l.rows, penalty{who: who, gpus: gpus}, before)
		if i < len(l.rows) && l.rows[i].who == who {
			return l.rows[i].on(level)
		}
	}
	return 1
}

// before orders penalties by who, then by falling number of GPUs.
func before(a, b penalty) int {
	if c := strings.Compare(a.who, b.who); c != 0 {
		return c
	}
	return b.gpus - a.gpus
}

func (p *penalty) on(level Level) float64 {
	if level == SameNode {
		return max(1, p.at[SameNode])
	}
	for l := level; l < levels; l++ {
		if p.at[l] > 0 {
			return p.at[l]
		}
	}
	return max(1, slices.Max(p.at[:level]))
}

// ReadLocality reads a table of penalties with the columns model_or_class, gpus_min, level (node, rack or across) and
// penalty (>= 1), in any order:
//
//	model_or_class,gpus_min,level,penalty
//	resnet50,16,across,1.16
//	*,1,across,1
//
// Each model or class, number of GPUs and level stands there once, and for the same GPUs no level is cheaper than a
// nearer one. Errors name the file as name, the line, and what was wanted instead.
func ReadLocality(r io.Reader, name string) (Locality, error) {
	t, err := openTable(r, name)
	if err != nil {
		return Locality{}, err
	}
	at, err := columns(t, "model_or_class", "gpus_min", "level", "penalty")
	if err != nil {
		return Locality{}, err
	}
	var l Locality
	err = each(t, maxPenalties, func(row []string) error {
		return l.add(t, row[at[0]], row[at[1]], row[at[2]], row[at[3]])
	})
	if err != nil {
		return Locality{}, err
	}
	return l, nil
}

// OrElse returns l with across, >= 1, for everyone's gangs on several nodes of which it says nothing.
func (l Locality) OrElse(across float64) Locality {
	rest := penalty{who: anyone, gpus: 1}
	l.rows = slices.Clone(l.rows)
	if i, found := slices.BinarySearchFunc(l.rows, rest, before); !found {
		l.rows = slices.Insert(l.rows, i, rest)
	}
	for i := range l.rows {
		if p := &l.rows[i]; p.who == anyone && slices.Max(p.at[SameRack:]) == 0 {
			p.at[Across] = max(across, p.at[SameNode])
		}
	}
	return l
}

// Whole reports whether the table says something of everyone's gangs on several nodes: else those of models and classes
// that it does not name would cost nothing.
func (l Locality) Whole() bool {
	i, _ := slices.BinarySearchFunc(l.rows, penalty{who: anyone, gpus: 2}, before) // what holds for 2 holds for more
	return i < len(l.rows) && l.rows[i].who == anyone && slices.Max(l.rows[i].at[SameRack:]) > 0
}

// add takes one row of a file.
func (l *Locality) add(t *csvtable.Table, who, gpus, level, value string) error {
	if !wordOK(who) {
		return t.Fail("model_or_class %s, want %s", csvtable.Quote(who), wantedWord)
	}
	n, err := number(gpus, 1, 1e6)
	if err != nil || n != float64(int(n)) {
		return t.Fail("gpus_min %s, want a whole number in 1..1000000", csvtable.Quote(gpus))
	}
	at := slices.Index(levelNames[:], level)
	if at < 0 {
		return t.Fail("level %s%s, want one of %s", csvtable.Quote(level), suggest.Hint(level, levelNames[:]),
			strings.Join(levelNames[:], ", "))
	}
	x, err := number(value, 1, MaxPenalty)
	if err != nil {
		return t.Fail("penalty %s, want a number in 1..%d", csvtable.Quote(value), MaxPenalty)
	}
	l.near = l.near || Level(at) == SameNode && x > 1
	p := penalty{who: strings.Clone(who), gpus: int(n)}
	i, found := slices.BinarySearchFunc(l.rows, p, before)
	if !found {
		l.rows = slices.Insert(l.rows, i, p)
	}
	return l.rows[i].set(t, Level(at), x)
}

func (p *penalty) set(t *csvtable.Table, level Level, x float64) error {
	if p.at[level] != 0 {
		return t.Fail("%s from %d GPUs on, level %s, twice, want it once", csvtable.Quote(p.who), p.gpus, level)
	}
	for other, y := range p.at {
		nearer := Level(other) < level
		if y != 0 && (nearer && y > x || !nearer && y < x) {
			return t.Fail("penalty %v on level %s and %v on level %s, want no level cheaper than a nearer one", x,
				level, y, Level(other))
		}
	}
	p.at[level] = x
	return nil
}
