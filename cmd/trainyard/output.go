package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"
)

// writeJSON writes v as one indented document, or nothing but an error.
func writeJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("json: %w", err)
	}
	return writeText(w, b.String())
}

// writeText writes all of text at once.
func writeText(w io.Writer, text string) error {
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("output: %w", err)
	}
	return nil
}

// defaultWidth is the width in columns of what is not a terminal.
const defaultWidth = 80

// widthOf returns the number of columns of the terminal behind w, at least defaultWidth.
func widthOf(w io.Writer) int {
	if f, ok := terminal(w); ok {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil {
			return max(columns, defaultWidth)
		}
	}
	return defaultWidth
}

// terminal returns the terminal behind w, and whether there is one.
func terminal(w io.Writer) (*os.File, bool) {
	f, ok := w.(*os.File)
	return f, ok && term.IsTerminal(int(f.Fd()))
}
