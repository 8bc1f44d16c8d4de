package task

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ParseSlurmMemory reads a size of memory as Slurm writes it, a whole number with K, M, G or T behind it, M where
// there is none, and returns it in MiB. 0 is a size: Slurm takes it for all of a node.
func ParseSlurmMemory(text string) (mib float64, err error) {
	digits := strings.TrimRight(text, "kKmMgGtTbB")
	powers := map[string]int{"": 0, "K": -10, "M": 0, "G": 10, "T": 20}
	power, known := powers[strings.TrimSuffix(strings.ToUpper(text[len(digits):]), "B")]
	n, bad := strconv.ParseUint(digits, 10, 40)
	if bad != nil || !known || strings.EqualFold(text[len(digits):], "b") {
		return 0, fmt.Errorf("%s, want a size such as 4000, which are megabytes, 500M or 16G", text)
	}
	return math.Ldexp(float64(n), power), nil
}
