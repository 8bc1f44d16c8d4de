package system

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/trainyard/trainyard/internal/suggest"
	"github.com/trainyard/trainyard/model/skew"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/place"
)

// Settings are the values given to the keys of one system. Getters return the default where a key is absent and note the
// first value that is wrong.
type Settings struct {
	values map[string]string
	err    error
}

// NewSettings returns settings with the given values, which it does not copy.
func NewSettings(values map[string]string) *Settings { return &Settings{values: values} }

// Err returns the first thing wrong with a value that was asked for.
func (s *Settings) Err() error { return s.err }

func (s *Settings) wrong(key, value, wish string) {
	if s.err == nil {
		s.err = fmt.Errorf("%s=%q, want %s", key, value, wish)
	}
}

// Has reports whether key was given.
func (s *Settings) Has(key string) bool {
	_, ok := s.values[key]
	return ok
}

// Text returns the value of key, "" where it is absent.
func (s *Settings) Text(key string) string { return s.values[key] }

// Float returns a number >= 0, or +Inf if the value is inf.
func (s *Settings) Float(key string, def float64) float64 {
	return s.number(key, def, math.Inf(1), "a number >= 0 or inf")
}

// number returns a number from 0 to most; wish says so.
func (s *Settings) number(key string, def, most float64, wish string) float64 {
	text, ok := s.values[key]
	if !ok {
		return def
	}
	x, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || !(x >= 0 && x <= most) {
		s.wrong(key, text, wish)
		return def
	}
	return x
}

// Int returns a whole number >= 0.
func (s *Settings) Int(key string, def int) int {
	text, ok := s.values[key]
	if !ok {
		return def
	}
	x, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || x < 0 {
		s.wrong(key, text, "a whole number >= 0")
		return def
	}
	return x
}

// Seconds returns a duration given in seconds, at most a century.
func (s *Settings) Seconds(key string, def time.Duration) time.Duration {
	return s.seconds(key, def, "")
}

// seconds is Seconds of a key that may be something else as well.
func (s *Settings) seconds(key string, def time.Duration, or string) time.Duration {
	const century = 100 * 365.25 * 86400
	if !s.Has(key) {
		return def
	}
	return sched.Seconds(s.number(key, def.Seconds(), century, "a number >= 0, in seconds, at most a century"+or))
}

// Durations are durations by model.
type Durations struct {
	Models map[string]time.Duration
	Others time.Duration
}

// Of returns that of a model.
func (d *Durations) Of(model string) time.Duration {
	if x, ok := d.Models[model]; ok {
		return x
	}
	return d.Others
}

// Longest returns the longest of all.
func (d *Durations) Longest() time.Duration {
	most := d.Others
	for _, x := range d.Models {
		most = max(most, x)
	}
	return most
}

// ByModel returns durations given in seconds as MODEL=SECONDS,...,SECONDS: the last is for models not named, def if there
// is none.
func (s *Settings) ByModel(key string, def time.Duration) Durations {
	all := Durations{Others: def}
	text := s.values[key]
	if !strings.Contains(text, "=") {
		all.Others = s.Seconds(key, def)
		return all
	}
	for _, part := range strings.Split(text, ",") {
		model, seconds, named := strings.Cut(strings.TrimSpace(part), "=")
		if !named {
			model, seconds = "", model
		}
		d := NewSettings(map[string]string{key: seconds})
		x := d.Seconds(key, 0)
		switch _, twice := all.Models[model]; {
		case d.err != nil || twice || named && model == "":
			s.wrong(key, text, "seconds, or MODEL=SECONDS,... and seconds for others, each model once")
			return all
		case !named:
			all.Others = x
		case all.Models == nil:
			all.Models = map[string]time.Duration{model: x}
		default:
			all.Models[model] = x
		}
	}
	return all
}

// Floats returns a list of numbers separated by commas; the empty value is the empty list.
func (s *Settings) Floats(key string, def []float64) []float64 {
	text, ok := s.values[key]
	if !ok {
		return def
	}
	var list []float64
	for _, part := range strings.Split(text, ",") {
		part = strings.TrimSpace(part)
		if part == "" && strings.TrimSpace(text) == "" {
			break
		}
		x, err := strconv.ParseFloat(part, 64)
		if err != nil || math.IsNaN(x) {
			s.wrong(key, text, "numbers separated by commas")
			return def
		}
		list = append(list, x)
	}
	return list
}

// OneOf returns the value, which must be one of choices; def if the key is absent.
func (s *Settings) OneOf(key string, def string, choices ...string) string {
	text, ok := s.values[key]
	if !ok {
		return def
	}
	for _, c := range choices {
		if c == text {
			return c
		}
	}
	s.wrong(key, text, strings.Join(choices, ", ")+suggest.Hint(text, choices))
	return def
}

// placements are the rules by name.
var placements = []string{"count", "consolidate", "packed", "yarn", "skew"}

// Placer returns the placement rule asked for; k says what is known of models.
func (s *Settings) Placer(def string, k Knowledge) sched.Placer {
	of := k.Skew
	if of == nil {
		of = skew.Of
	}
	learned := s.values["pack_limit"] == "learned"
	limit := skew.PackLimit
	if !learned { // looked at under every placement, so that no mistake goes unnoticed
		limit = s.number("pack_limit", skew.PackLimit, math.Inf(1), "a number >= 0, or learned")
	}
	switch s.OneOf("placement", def, placements...) {
	case "count":
		return place.Count{}
	case "packed":
		return place.Packed{}
	case "yarn":
		return place.Yarn{}
	case "skew":
		if learned {
			return place.NewLearnedSkew(of)
		}
		return place.Skew{Of: of, Limit: limit}
	}
	return place.Consolidate{}
}

var errNoStages = errors.New("it decides as a whole, in no stages that rounds or a preset could change")

var errNoScores = errors.New("no PM scores of the GPUs were given; see --variability")

var errNoTruth = errors.New("stragglers=oracle: nobody knows which GPUs are slow; only simulations do, of the key slow_gpus")

// errNoWork says that a system must be told the remaining work of jobs.
var errNoWork = errors.New("no knowledge of remaining work was given")
