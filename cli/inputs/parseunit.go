package inputs

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/internal/inputfile"
)

// ParseUnit reads --unit: a Go duration, a number of seconds, or nothing.
func ParseUnit(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	if x, err := strconv.ParseFloat(text, 64); err == nil && x*1e9 >= 1 && x <= 1e9 {
		return time.Duration(math.Round(x * 1e9)), nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, term.Usagef("--unit %q, want a duration such as 1ms, or seconds such as 0.001", text)
	}
	return d, nil
}

// AppsError names the flag in an error about what --profiles names.
func AppsError(err error) error {
	if inputfile.FaultOf(err) == inputfile.Asked && strings.HasPrefix(err.Error(), "profiles") {
		return term.Usage(fmt.Errorf("--%w", err))
	}
	return err
}
