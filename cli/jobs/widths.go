package jobs

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/manager/jobfile"
	"github.com/trainyard/trainyard/sched"
)

// A width is written alike wherever it is read or written: N GPUs or slots, or MIN-MAX of them; "3 of 2-4" is what a
// job holds of the widths that it allows. A job file may say which of them systems give that do not resize:
// MIN-MAX:WANT.

// widthsWanted is what --gpus, and gpus= of an edit, takes.
var widthsWanted = fmt.Sprintf("N, MIN-MAX or MIN-MAX:WANT, from 1 to %d, MIN <= WANT <= MAX", jobfile.MaxGPUs)

// parseWidths reads N, MIN-MAX or MIN-MAX:WANT; MIN:MAX is the same as MIN-MAX.
// where is the flag or key that it is given to.
func parseWidths(where, text string) (r sched.Range, err error) {
	bad := term.Usagef("%s %q, want %s", where, text, widthsWanted)
	parts := strings.Split(strings.Replace(text, "-", ":", 1), ":")
	n := make([]int, len(parts))
	for i := range parts {
		if n[i], err = strconv.Atoi(parts[i]); err != nil || n[i] < 1 || n[i] > jobfile.MaxGPUs {
			return r, bad
		}
	}
	switch len(n) {
	case 1:
		r = sched.Rigid(n[0])
	case 2:
		r = sched.Range{Min: int32(n[0]), Want: int32(n[1]), Max: int32(n[1])}
	case 3:
		r = sched.Range{Min: int32(n[0]), Want: int32(n[2]), Max: int32(n[1])}
	}
	if r.Max == 0 || r.Min > r.Want || r.Want > r.Max {
		return r, bad
	}
	return r, nil
}

// widthText is what a job holds of the widths that it allows, or these where it holds nothing.
func widthText(j *api.Job) string {
	allowed := term.Widths(j.Min, j.Max)
	switch n := len(j.GPUs); {
	case n == 0:
		return allowed
	case j.Min == j.Max:
		return strconv.Itoa(n)
	default:
		return fmt.Sprintf("%d of %s", n, allowed)
	}
}

// briefWidth is widthText where there is little room: what a job holds, or else allows.
func briefWidth(j *api.Job) string {
	if n := len(j.GPUs); n > 0 {
		return strconv.Itoa(n)
	}
	return term.Widths(j.Min, j.Max)
}

// unitHead is the head of a column of widths: gpus or slots.
func unitHead(unit string) string {
	if unit == "" {
		unit = "GPU"
	}
	return strings.ToLower(unit) + "s"
}
