package term

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// ShortTime prints a time in at most six characters and about three digits: 0s, 9.33s, 45.1s, 12m05s, 1h23m, 3d04h.
func ShortTime(seconds float64) string {
	switch {
	case seconds < 0.9995:
		return shortUnder1(seconds)
	case seconds < 59.95:
		return strconv.FormatFloat(roundTo3(seconds), 'f', -1, 64) + "s"
	}
	d := time.Duration(math.Round(seconds)) * time.Second
	switch {
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d.Round(time.Minute) < 24*time.Hour:
		d = d.Round(time.Minute)
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	const day = 24 * time.Hour
	if d = d.Round(time.Hour); d < 100*day {
		return fmt.Sprintf("%dd%02dh", d/day, d%day/time.Hour)
	}
	return fmt.Sprintf("%dd", d.Round(day)/day)
}

// shortUnder1 is shortTime below a second.
func shortUnder1(seconds float64) string {
	switch {
	case seconds <= 0:
		return "0s"
	case seconds < 0.9995e-3:
		return "<1ms"
	}
	return strconv.FormatFloat(math.Round(seconds*1e3), 'f', -1, 64) + "ms"
}

// roundTo3 rounds to three digits.
func roundTo3(x float64) float64 {
	y, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 3, 64), 64)
	return y
}

// Change prints how much x differs from base: -32%, +4%, x12. It is empty where base is 0.
func Change(x, base float64) string {
	if base == 0 {
		return ""
	}
	r := x / base
	if r >= 10 {
		return "x" + strconv.FormatFloat(math.Round(r), 'f', -1, 64)
	}
	return fmt.Sprintf("%+.0f%%", math.Round(100*(r-1))+0) // +0: no -0%
}

// Percent prints a share.
func Percent(x float64) string { return strconv.FormatFloat(math.Round(100*x), 'f', -1, 64) + "%" }

// Counted prints "1 job" or "2 jobs".
func Counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Entry returns what, and text next to it, wrapped.
func Entry(what, text string, width int) string {
	return fmt.Sprintf("%-8s  %s\n", what, Wrap(text, width, 10))
}

// Wrap breaks text at spaces into lines of at most width characters, where words allow, and indents all but the first.
func Wrap(text string, width, indent int) string {
	var b strings.Builder
	column := 0
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
			column = indent
		case column+1+len(word) > width:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			column = indent
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}

// OneLine joins the lines of a message.
func OneLine(text string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(text, "\n", " ")), " ")
}

// ShellWord quotes what a shell would not take for one plain word.
func ShellWord(s string) string {
	plain := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' ||
			strings.ContainsRune("-_=+./:,@%", r)
	}
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Widths writes the widths that a job allows: N, or MIN-MAX.
func Widths(least, most int) string {
	if least == most {
		return strconv.Itoa(least)
	}
	return fmt.Sprintf("%d-%d", least, most)
}
