package experiment

import (
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/internal/strictyaml"
	"github.com/trainyard/trainyard/stage/allocate"
)

// mostConstants bounds the file of constants, in bytes.
const mostConstants = 1 << 16

// readConstants replaces those constants of set that a YAML file names; path "" = there is none. Times are in seconds.
func readConstants(path string, set *allocate.Constants) error {
	if path == "" {
		return nil
	}
	src, err := strictyaml.ReadFile(path, mostConstants)
	if err != nil {
		return term.Usage(err)
	}
	r := &strictyaml.Reader{Prefix: "constants", File: path}
	doc := r.Document(src, mostConstants, "constants")
	seconds := func(dst *time.Duration) func(string, ast.Node) { return secondsOf(r, dst) }
	if r.Err() == nil {
		r.Mapping(doc, "the document", []strictyaml.Field{
			strictyaml.Key("load_window", seconds(&set.LoadWindow)),
			strictyaml.Key("least_window", seconds(&set.LeastWindow)),
			strictyaml.Key("least_moments", strictyaml.Whole(r, &set.LeastMoments, 1, 1e6)),
			strictyaml.Key("level_every", seconds(&set.LevelEvery)),
			strictyaml.Key("stretch", factorOf(r, &set.Stretch)),
			strictyaml.Key("keep_after", seconds(&set.KeepAfter)),
			strictyaml.Key("keep_for", seconds(&set.KeepFor)),
			strictyaml.Key("hold_for", factorOf(r, &set.HoldFor)),
			strictyaml.Key("above", factorOf(r, &set.Above)),
			strictyaml.Key("most_priority", strictyaml.Whole(r, &set.MostPriority, 0, 100)),
			strictyaml.Key("long_wait", seconds(&set.LongWait)),
			strictyaml.Key("most_urgent", factorOf(r, &set.MostUrgent)),
		})
	}
	if r.Err() != nil {
		return term.Usage(r.Err())
	}
	return nil
}

// factorOf reads a number above 0, at most a million.
func factorOf(r *strictyaml.Reader, dst *float64) func(string, ast.Node) {
	return func(key string, n ast.Node) {
		x, ok := strictyaml.Decimal(n)
		if !ok || !(x > 0 && x <= 1e6) {
			r.Fail(n, "%s, want a number above 0, at most 1e6", strictyaml.Describe(key, n))
			return
		}
		*dst = x
	}
}

// secondsOf reads a time, from a second to a year.
func secondsOf(r *strictyaml.Reader, dst *time.Duration) func(string, ast.Node) {
	return func(key string, n ast.Node) {
		const year = 365 * 24 * 3600
		x, ok := strictyaml.Decimal(n)
		if !ok || !(x >= 1 && x <= year) {
			r.Fail(n, "%s, want seconds, from 1 to %d", strictyaml.Describe(key, n), year)
			return
		}
		*dst = time.Duration(x * float64(time.Second))
	}
}
