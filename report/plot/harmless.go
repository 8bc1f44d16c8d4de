package plot

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// mostRunes is how much of a name is looked at.
const mostRunes = 240

// harmless returns a name as a line of text that changes nothing around it: what is no character of XML, controls, and
// marks that turn the direction of what follows are shown as U+FFFD; what runs from right to left is isolated.
func harmless(text string) string {
	var b strings.Builder
	n, turns := 0, false
	for _, r := range text {
		if n++; n > mostRunes {
			b.WriteRune('…')
			break
		}
		switch {
		case r == '\t' || r == '\n' || r == '\r':
			r = ' '
		case r == utf8.RuneError, unicode.IsControl(r), unicode.Is(unicode.Cs, r), r&0xfffe == 0xfffe,
			unicode.Is(unicode.Bidi_Control, r), r == '\u2028', r == '\u2029':
			r = utf8.RuneError
		}
		turns = turns || fromRight(r)
		b.WriteRune(r)
	}
	if turns {
		return "\u2068" + b.String() + "\u2069"
	}
	return b.String()
}

// fromRight reports whether a letter is of a script that runs from right to left.
func fromRight(r rune) bool {
	return r >= 0x590 && r <= 0x8ff || r >= 0xfb1d && r <= 0xfefc || r >= 0x10800 && r <= 0x10fff ||
		r >= 0x1e800 && r <= 0x1efff
}

// narrow and wide are letters that are much narrower, or wider, than most.
const (
	narrow = "fijlrtI.,:;'|!()[]/· "
	wide   = "mwMW@%—…"
)

// widthOf returns about how wide a text is, rather more than less: no one knows with which font it will be shown.
func widthOf(text string, size float64) float64 {
	w := 0.0
	for _, r := range text {
		switch {
		case r == '\u2068' || r == '\u2069':
		case strings.ContainsRune(narrow, r):
			w += .37
		case strings.ContainsRune(wide, r):
			w += .97
		case r >= 'A' && r <= 'Z':
			w += .70
		case r < 0x1100:
			w += .625
		default:
			w += 1.1
		}
	}
	return w * size
}

// cut shortens a text to the room that it has; to nothing where there is none.
func cut(text string, room, size float64) string {
	if widthOf(text, size) <= room {
		return text
	}
	runes := []rune(strings.Trim(text, "\u2068\u2069"))
	for n := min(len(runes)-1, int(room/size*3)); n > 0; n-- {
		if short := strings.TrimRight(string(runes[:n]), " ") + "…"; widthOf(short, size) <= room {
			if strings.HasPrefix(text, "\u2068") {
				short = "\u2068" + short + "\u2069"
			}
			return short
		}
	}
	return ""
}
