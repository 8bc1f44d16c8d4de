package variability

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/trainyard/trainyard/internal/csvtable"
)

// Limits on what the readers take in, far above any file we know of.
const (
	maxText = 1 << 28 // bytes of a file
	maxWord = 256     // bytes of a name
)

// openTable reads the header. name is what errors call the file.
func openTable(r io.Reader, name string) (*csvtable.Table, error) {
	return csvtable.Kind{Prefix: "variability", Empty: "empty file", Bytes: maxText}.Open(r, name)
}

// number reads a number in least..most; the error is what is wanted, alone.
func number(text string, least, most float64) (float64, error) {
	x, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange), !(x > 0):
		return 0, errors.New("a number > 0")
	case x < least || x > most:
		return 0, fmt.Errorf("a number in %v..%v", least, most)
	}
	return x, nil
}

// upTo reads a number in 0..most; the error is what is wanted, alone.
func upTo(text string, most float64) (float64, error) {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x >= 0 && x <= most) {
		return 0, fmt.Errorf("a number in 0..%v", most)
	}
	return x, nil
}

// wordOK reports whether s is a name that a file may hold: not empty, short, one line of UTF-8.
func wordOK(s string) bool {
	return s != "" && len(s) <= maxWord && utf8.ValidString(s) && !strings.ContainsFunc(s, func(c rune) bool {
		return c < ' ' || c == 0x7f
	})
}

var wantedWord = fmt.Sprintf("a name of 1 to %d bytes without control characters", maxWord)
