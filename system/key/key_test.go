package key_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/system/key"
)

// Ensure that keys read what they say, blanks around a value included, and their defaults where they are absent.
func TestGet(t *testing.T) {
	s := key.NewSettings(map[string]string{"f": " 2.5 ", "i": " 7", "inf": "inf", "s": "0.5", "list": "1, 2.5 ,3",
		"none": " ", "word": "b"})
	number := func(name, def string) float64 { return key.Number(name, def, "").Get(s) }
	whole := func(name, def string) int { return key.Int(name, def, "").Get(s) }
	list := func(name, def string) []float64 { return key.Numbers(name, def, "").Get(s) }
	seconds := func(name, def string) time.Duration { return key.Seconds(name, def, "").Get(s) }
	word := func(name, def string) string { return key.Choice(name, def, "", "a", "b").Get(s) }
	if number("f", "0") != 2.5 || number("absent", "4") != 4 || number("absent", "") != 0 || whole("i", "0") != 7 ||
		whole("absent", "3") != 3 ||
		number("inf", "0") < 1e308 || seconds("s", "0") != 500*time.Millisecond ||
		seconds("absent", "1.5") != 1500*time.Millisecond ||
		word("word", "a") != "b" || word("absent", "b") != "b" || !key.Switch("b", "a", "word", "a", "").Get(s) ||
		!s.Has("f") || s.Has("absent") {
		t.Error("a value is not read as it was given")
	}
	if l := list("list", ""); !slices.Equal(l, []float64{1, 2.5, 3}) {
		t.Errorf("list %v", l)
	}
	if l := list("none", "1"); len(l) != 0 {
		t.Errorf("a blank list is %v, want none", l)
	}
	if s.Err() != nil {
		t.Error(s.Err())
	}
	s = key.NewSettings(map[string]string{"a": "x", "b": "y"})
	if key.Number("a", "1", "").Get(s); key.Number("b", "2", "").Get(s) != 2 || s.Err() == nil ||
		!strings.HasPrefix(s.Err().Error(), `a="x"`) {
		t.Errorf("%v, want the first wrong value, and defaults for all", s.Err())
	}
}
