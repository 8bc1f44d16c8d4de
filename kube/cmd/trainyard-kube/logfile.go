package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
)

// logFile is a file to which whole lines are added: one that a crash or a full disk cut short is taken away again.
type logFile struct{ *os.File }

// openLog opens a file behind its last whole line. What is no ordinary file, as a pipe or a terminal, has nothing to be
// behind.
func openLog(path string) (logFile, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o644)
	if err != nil {
		return logFile{}, err
	}
	info, err := f.Stat()
	if err == nil && info.Mode().IsRegular() {
		err = cutToLines(f)
	}
	if err != nil {
		f.Close()
		return logFile{}, fmt.Errorf("%s: %w", path, err)
	}
	return logFile{f}, nil
}

// cutToLines takes away what is behind the last whole line.
func cutToLines(f *os.File) error {
	end, err := wholeLines(f)
	if err != nil {
		return err
	}
	return f.Truncate(end)
}

// wholeLines returns where the last whole line ends.
func wholeLines(f *os.File) (int64, error) {
	at, err := f.Seek(0, io.SeekEnd)
	for buf := make([]byte, 64<<10); at > 0 && err == nil; {
		n := min(at, int64(len(buf)))
		if _, err = f.ReadAt(buf[:n], at-n); err != nil {
			break
		}
		if i := bytes.LastIndexByte(buf[:n], '\n'); i >= 0 {
			return at - n + int64(i) + 1, nil
		}
		at -= n
	}
	return at, err
}

// Write adds lines, all of them or none.
func (l logFile) Write(b []byte) (int, error) {
	n, err := l.File.Write(b)
	if err == nil || n == 0 {
		return n, err
	}
	at, bad := l.Seek(0, io.SeekCurrent)
	if bad == nil {
		bad = l.Truncate(at - int64(n))
	}
	if bad != nil {
		return n, fmt.Errorf("%w; a line of it stays: %w", err, bad)
	}
	return 0, err
}
