package jobfile

import (
	"math"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/internal/strictyaml"
)

// output reads how much of what an attempt writes is kept.
func (r *reader) output(key string, n ast.Node, dst *int64) {
	*dst = 0
	r.Mapping(n, key, []strictyaml.Field{strictyaml.Key("max", func(_ string, n ast.Node) {
		s, _ := strictyaml.Plain(n)
		size, ok := parseSize(s)
		if !ok || size < task.LeastOutput || size > task.MostOutput {
			r.Fail(n, "%s, want a size from 64MiB to 1PiB, as in 500MiB or 1GiB", strictyaml.Describe("output max", n))
		}
		*dst = size
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
