package jobfile

import (
	"math"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/internal/strictyaml"
)

// output reads how much of what an attempt writes is kept, or to which files it writes.
func (r *reader) output(key string, n ast.Node, t *task.Task) {
	t.MaxOutput, t.Output = 0, task.OutputFile{}
	file := func(dst *string) func(string, ast.Node) {
		return func(key string, n ast.Node) {
			*dst = r.argument("output "+key, n, task.CheckArg)
			if err := task.CheckOutput(*dst); r.Err() == nil && err != nil {
				r.Fail(n, "output %s %v", key, err)
			}
		}
	}
	r.either(n, "max", "file")
	r.Mapping(n, key, []strictyaml.Field{strictyaml.Key("max", func(_ string, n ast.Node) {
		s, _ := strictyaml.Plain(n)
		size, ok := parseSize(s)
		if !ok || size < task.LeastOutput || size > task.MostOutput {
			r.Fail(n, "%s, want a size from 64MiB to 1PiB, as in 500MiB or 1GiB", strictyaml.Describe("output max", n))
		}
		t.MaxOutput = size
	}),
		strictyaml.Key("file", file(&t.Output.File)), strictyaml.Key("error", file(&t.Output.Error)),
		strictyaml.Key("mode", func(_ string, n ast.Node) {
			if r.word("output mode", n, task.OutputModes, &t.Output.Mode) == 0 { // the default, which leaves no trace
				t.Output.Mode = ""
			}
		})})
}

// units of sizes, each 1024 times the one before.
var units = []string{"KiB", "MiB", "GiB", "TiB", "PiB"}

// parseSize reads a whole number with a unit, in bytes; false if it is none, or too large for any disk.
func parseSize(text string) (int64, bool) {
	for i, unit := range units {
		digits, has := strings.CutSuffix(text, unit)
		if !has {
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 63)
		shift := 10 * (i + 1)
		if err != nil || strconv.FormatUint(n, 10) != digits || n > math.MaxInt64>>shift {
			return 0, false
		}
		return int64(n) << shift, true
	}
	return 0, false
}
