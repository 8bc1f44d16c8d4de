package term

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"
)

// WriteJSON writes v as one indented document, or nothing but an error.
func WriteJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("json: %w", err)
	}
	return WriteText(w, b.String())
}

// WriteText writes all of text at once.
func WriteText(w io.Writer, text string) error {
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("output: %w", err)
	}
	return nil
}

// DefaultWidth is the width in columns of what is not a terminal.
const DefaultWidth = 80

// WidthOf returns the number of columns of the terminal behind w, at least defaultWidth.
func WidthOf(w io.Writer) int {
	if f, ok := Terminal(w); ok {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil {
			return max(columns, DefaultWidth)
		}
	}
	return DefaultWidth
}

// Reads reports whether r is a terminal, at which someone may answer.
func Reads(r io.Reader) bool {
	f, ok := r.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Terminal returns the terminal behind w, and whether there is one.
func Terminal(w io.Writer) (*os.File, bool) {
	f, ok := w.(*os.File)
	return f, ok && term.IsTerminal(int(f.Fd()))
}
