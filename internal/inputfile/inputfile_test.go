package inputfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Ensure that each way in which a file cannot be used has its fault, through wrapping, and that no path means no file.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	whole := func(r io.Reader, _ string) (string, error) {
		b, err := io.ReadAll(r)
		return string(b), err
	}
	bad := errors.New("bad")
	refuse := func(io.Reader, string) (string, error) { return "", bad }
	for _, c := range []struct {
		path  string
		read  func(io.Reader, string) (string, error)
		want  string
		fault Fault
		is    error
	}{
		{path, whole, "text", None, nil},
		{"", refuse, "", None, nil},
		{dir, whole, "", Damaged, nil},
		{filepath.Join(dir, "none"), whole, "", None, fs.ErrNotExist},
		{path, refuse, "", Damaged, bad},
	} {
		got, err := Read("table", c.path, c.read)
		err = wrapped(err)
		if got != c.want && err == nil || FaultOf(err) != c.fault || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: %q, fault %d, %v", c.path, got, FaultOf(err), err)
		}
	}
	if err := WrongAsk(WrongFile(bad)); FaultOf(err) != Asked || !errors.Is(err, bad) || WrongAsk(nil) != nil {
		t.Errorf("%v, want the outermost fault", err)
	}
}

func wrapped(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("simulate: %w", err)
}
