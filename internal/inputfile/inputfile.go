// Package inputfile reads files that users name, and says what must change where one cannot be used: the request, or
// the file.
package inputfile

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// Fault says what must change.
type Fault uint8

// Faults. An error about a file that is not there, or may not be read, has none: the error of package os says it.
const (
	None    Fault = iota
	Asked         // what was asked for
	Damaged       // what the file holds
)

// faulty is an error with a fault.
type faulty struct {
	error
	fault Fault
}

// Unwrap returns the error without the fault.
func (f *faulty) Unwrap() error { return f.error }

// WrongAsk marks err as one about what was asked for; nil stays nil.
func WrongAsk(err error) error { return mark(err, Asked) }

// WrongFile marks err as one about what a file holds; nil stays nil.
func WrongFile(err error) error { return mark(err, Damaged) }

func mark(err error, fault Fault) error {
	if err == nil {
		return nil
	}
	return &faulty{err, fault}
}

// FaultOf returns the outermost fault of an error.
func FaultOf(err error) Fault {
	if f := (*faulty)(nil); errors.As(err, &f) {
		return f.fault
	}
	return None
}

// NoFolder refuses a folder where a file is wanted; what names the file.
func NoFolder(what, path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return WrongFile(fmt.Errorf("%s: %s is a directory, want a file", what, path))
	}
	return nil
}

// Read reads the file at a path by a reader, which is given the path too; what names the file. Without a path it
// returns the zero value.
func Read[T any](what, path string, read func(io.Reader, string) (T, error)) (x T, _ error) {
	if path == "" {
		return x, nil
	}
	if err := NoFolder(what, path); err != nil {
		return x, err
	}
	f, err := os.Open(path)
	if err != nil {
		return x, fmt.Errorf("%s: %w", what, err)
	}
	defer f.Close()
	x, err = read(f, path)
	return x, WrongFile(err)
}
