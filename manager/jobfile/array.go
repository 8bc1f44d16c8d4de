package jobfile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/trainyard/trainyard/internal/strictyaml"
	"github.com/trainyard/trainyard/sched"
)

// Array is the tasks of an array as its user numbers them.
type Array struct {
	Indices []int32 // ascending, none twice, from 0
	AtOnce  int32   // so many at most run at once; 0 = all
}

// arrayWanted says how an array is written.
const arrayWanted = "numbers as in 0-99, 0-99%8 or 1,3,5-9:2, at most 100000 of them"

// ParseArray reads the numbers of an array as Slurm writes them: 0-99%8 are a hundred, of which eight run at once.
func ParseArray(text string) (a Array, err error) {
	wrong := fmt.Errorf("array %s, want %s", strictyaml.Quote(text), arrayWanted)
	numbers, most, limited := strings.Cut(text, "%")
	if limited {
		n, bad := strconv.ParseUint(most, 10, 24)
		if bad != nil || n < 1 {
			return a, wrong
		}
		a.AtOnce = int32(n)
	}
	for _, part := range strings.Split(numbers, ",") {
		low, high, step, ok := parseSpan(part)
		if !ok || (high-low)/step+1+len(a.Indices) > sched.MaxArray {
			return a, wrong
		}
		for ; low <= high; low += step {
			a.Indices = append(a.Indices, int32(low))
		}
	}
	slices.Sort(a.Indices)
	a.Indices = slices.Compact(a.Indices)
	return a, nil
}

// parseSpan reads 3, 3-7 or 3-7:2; false if it is none of these.
func parseSpan(part string) (low, high, step int, ok bool) {
	span, by, stepped := strings.Cut(part, ":")
	from, to, ranged := strings.Cut(span, "-")
	if !ranged {
		to = from
	}
	if !stepped {
		by = "1"
	}
	numbers := [3]int{}
	for i, text := range []string{from, to, by} {
		n, err := strconv.ParseUint(text, 10, 24)
		if err != nil {
			return 0, 0, 0, false
		}
		numbers[i] = int(n)
	}
	low, high, step = numbers[0], numbers[1], numbers[2]
	return low, high, step, low <= high && step > 0
}

// array reads which tasks a job has.
func (r *reader) array(n ast.Node, dst *Array) {
	text, _ := strictyaml.Plain(n)
	a, err := ParseArray(text)
	if err != nil {
		r.Fail(n, "%s, want %s", strictyaml.Describe("array", n), arrayWanted)
	}
	*dst = a
}

// task says which task of the array the n-th job of an entry is; zero where the entry is no array.
func (a *Array) task(n int) sched.Array {
	if len(a.Indices) == 0 {
		return sched.Array{}
	}
	return sched.Array{Place: int32(n), Index: a.Indices[n], Size: int32(len(a.Indices)), AtOnce: a.AtOnce}
}
