package key

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/trainyard/trainyard/internal/suggest"
	"github.com/trainyard/trainyard/sched"
)

func number(text string) (float64, error) { return strconv.ParseFloat(strings.TrimSpace(text), 64) }

// ParseNumber returns a reader of numbers from 0 to most, which want describes.
func ParseNumber(most float64, want string) func(text string) (float64, error) {
	return func(text string) (float64, error) {
		x, err := number(text)
		if err != nil || !(x >= 0 && x <= most) {
			return 0, errors.New(want)
		}
		return x, nil
	}
}

// Number declares a number >= 0, or inf.
func Number(name, def, doc string) Of[float64] {
	return New(name, def, doc, ParseNumber(math.Inf(1), "a number >= 0 or inf"))
}

// NumberTo declares a number from 0 to most, which is whole.
func NumberTo(most int, name, def, doc string) Of[float64] {
	return New(name, def, doc, ParseNumber(float64(most), fmt.Sprintf("a number from 0 to %d", most)))
}

// Positive declares a number > 0 and at most most, which want describes.
func Positive(most float64, want, name, def, doc string) Of[float64] {
	return New(name, def, doc, func(text string) (float64, error) {
		x, err := ParseNumber(most, want)(text)
		if err == nil && x == 0 {
			err = errors.New(want)
		}
		return x, err
	})
}

// Int declares a whole number >= 0.
func Int(name, def, doc string) Of[int] {
	return New(name, def, doc, func(text string) (int, error) {
		x, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || x < 0 {
			return 0, errors.New("a whole number >= 0")
		}
		return x, nil
	})
}

// century is the longest time that a key takes, in seconds.
const century = 100 * 365.25 * 86400

// ParseSeconds reads a time in seconds. or names what else the key takes, as in ", or auto".
func ParseSeconds(text, or string) (time.Duration, error) {
	x, err := ParseNumber(century, "a number >= 0, in seconds, at most a century"+or)(text)
	return sched.Seconds(x), err
}

// Seconds declares a time in seconds.
func Seconds(name, def, doc string) Of[time.Duration] {
	return New(name, def, doc, func(text string) (time.Duration, error) { return ParseSeconds(text, "") })
}

// Numbers declares numbers separated by commas; the empty value is none.
func Numbers(name, def, doc string) Of[[]float64] {
	return New(name, def, doc, func(text string) (list []float64, err error) {
		if strings.TrimSpace(text) == "" {
			return nil, nil
		}
		for _, part := range strings.Split(text, ",") {
			x, err := number(part)
			if err != nil || math.IsNaN(x) {
				return nil, errors.New("numbers separated by commas")
			}
			list = append(list, x)
		}
		return list, nil
	})
}

// Choice declares one of several words.
func Choice(name, def, doc string, choices ...string) Of[string] {
	k := New(name, def, doc, func(text string) (string, error) { return text, oneOf(text, choices) })
	k.Choices = choices
	return k
}

// Switch declares one of two words; its value says whether it is the first.
func Switch(on, off, name, def, doc string) Of[bool] {
	k := New(name, def, doc, func(text string) (bool, error) { return text == on, oneOf(text, []string{on, off}) })
	k.Choices = []string{on, off}
	return k
}

func oneOf(text string, choices []string) error {
	for _, c := range choices {
		if c == text {
			return nil
		}
	}
	return errors.New(strings.Join(choices, ", ") + suggest.Hint(text, choices))
}

// Text declares any text.
func Text(name, def, doc string) Of[string] {
	return New(name, def, doc, func(text string) (string, error) { return text, nil })
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

// ByModel declares times in seconds, one for all models or MODEL=SECONDS,...,SECONDS: the last is for models not named,
// others if there is none.
func ByModel(others time.Duration, name, def, doc string) Of[Durations] {
	return New(name, def, doc, func(text string) (Durations, error) {
		if strings.Contains(text, "=") {
			return parseByModel(text, others)
		}
		x, err := ParseSeconds(text, "")
		return Durations{Others: x}, err
	})
}

func parseByModel(text string, others time.Duration) (Durations, error) {
	all := Durations{Models: make(map[string]time.Duration), Others: others}
	for _, part := range strings.Split(text, ",") {
		model, seconds, named := strings.Cut(strings.TrimSpace(part), "=")
		if !named {
			model, seconds = "", model
		}
		x, err := ParseSeconds(seconds, "")
		if _, twice := all.Models[model]; err != nil || twice || named && model == "" {
			return all, errors.New("seconds, or MODEL=SECONDS,... and seconds for others, each model once")
		}
		if named {
			all.Models[model] = x
		} else {
			all.Others = x
		}
	}
	return all, nil
}
