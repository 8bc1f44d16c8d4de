package trace

import "fmt"

// input is the text of one file, line by line. It takes in the comment lines itself, and its errors name file and line.
type input struct {
	file    string
	mark    byte // lines that start with it are comments; 0: there are none
	remarks remarks
	lines
}

// fail returns an error about the line read last.
func (in *input) fail(format string, args ...any) error {
	return &ParseError{in.file, max(in.line, 1), fmt.Sprintf(format, args...)}
}

// next reads one line that is no comment; ok is false at the end of the text.
func (in *input) next() (line string, ok bool, err error) {
	for {
		line, ok, err = in.lines.next()
		switch {
		case err != nil:
			return "", false, inFile(in.file, in.line+1, err)
		case len(line) > MaxLine:
			return "", false, in.fail("%d bytes, want at most %d in a line", len(line), MaxLine)
		case !ok || in.mark == 0 || line == "" || line[0] != in.mark:
			return line, ok, nil
		}
		in.remarks.note(line)
	}
}
