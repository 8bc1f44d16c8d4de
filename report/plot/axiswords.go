package plot

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// span writes seconds in the two largest units that matter: 2d03h, 3h05m, 4m07s, 12.3 s.
func span(s float64) string {
	switch whole := int64(math.Round(s)); {
	case s < 60:
		return strconv.FormatFloat(s, 'g', 3, 64) + " s"
	case whole < 3600:
		return fmt.Sprintf("%dm%02ds", whole/60, whole%60)
	case math.Round(s/60) < 1440:
		minutes := int64(math.Round(s / 60))
		return fmt.Sprintf("%dh%02dm", minutes/60, minutes%60)
	default:
		hours := int64(math.Round(s / 3600))
		return fmt.Sprintf("%dd%02dh", hours/24, hours%24)
	}
}

// brief writes a round span in one unit where that says it: 2 h, 90 s.
func brief(s float64) string {
	for _, u := range []struct {
		of   float64
		name string
	}{{86400, "d"}, {3600, "h"}, {60, "min"}} {
		if s >= u.of && math.Abs(math.Round(s/u.of*10)/10-s/u.of) < 1e-9 {
			return strconv.FormatFloat(s/u.of, 'f', -1, 64) + " " + u.name
		}
	}
	if s == 0 {
		return "0"
	}
	return strconv.FormatFloat(s, 'g', 3, 64) + " s"
}

// count writes a whole number with thin spaces between thousands.
func count(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "\u202f" + text[i:]
	}
	return text
}

func many(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return count(n) + " " + word + "s"
}

func percent(x float64) string {
	if p := math.Abs(x * 100); p != 0 && p < 9.95 {
		return fmt.Sprintf("%.1f%%", x*100)
	}
	return fmt.Sprintf("%.0f%%", x*100)
}

// change says how much more x is than was.
func change(x, was float64) string {
	if was <= 0 {
		return ""
	}
	p := math.Round((x/was - 1) * 100)
	switch {
	case p > 0:
		return fmt.Sprintf("+%.0f%%", p)
	case p < 0:
		return fmt.Sprintf("−%.0f%%", -p)
	}
	return "±0%"
}

// figure writes a number for an axis.
func figure(x float64) string {
	text := strconv.FormatFloat(x, 'g', 6, 64)
	if strings.ContainsRune(text, 'e') {
		return strconv.FormatFloat(x, 'g', 3, 64)
	}
	return text
}

// steps are round distances of times, in seconds.
var steps = []float64{.001, .01, .1, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200,
	86400, 172800, 432000, 864000, 2592000, 7776000, 31536000, 94608000, 315360000, 946080000}

// times returns round times from a to b, at most so many.
func times(a, b float64, most int) (list []float64) {
	step := steps[len(steps)-1]
	for _, s := range steps {
		if (b-a)/s <= float64(most) {
			step = s
			break
		}
	}
	for i := math.Ceil(a/step - 1e-9); i*step <= b+step*1e-9 && len(list) < 100; i++ {
		list = append(list, i*step)
	}
	return list
}

// rounds returns round numbers from 0 to b or a little more, at most so many steps.
func rounds(b float64, most int) (list []float64) {
	if b <= 0 {
		b = 1
	}
	size := math.Pow(10, math.Floor(math.Log10(b/float64(most))))
	step := size
	for _, k := range []float64{1, 2, 2.5, 5, 10} {
		if step = size * k; b/step <= float64(most) {
			break
		}
	}
	for i := 0; ; i++ {
		x := float64(i) * step
		list = append(list, math.Round(x/step*1e6)/1e6*step)
		if x >= b-step*1e-6 {
			return list
		}
	}
}

// decades returns times for an axis of logarithms from a to b.
func decades(a, b float64) (list []float64) {
	for _, s := range []float64{1e-3, 1e-2, .1, 1, 10, 60, 600, 3600, 36000, 86400, 864000, 8640000, 86400000} {
		if s >= a*.999 && s <= b*1.001 {
			list = append(list, s)
		}
	}
	return list
}
