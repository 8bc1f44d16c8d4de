package term

import (
	"os"
	"path/filepath"
	"testing"
)

// Ensure that what is written to the standard output comes behind what a file that it leads to had before, and that
// others write behind that.
func TestCreateOutOfStream(t *testing.T) { //nolint:paralleltest // the standard output is everyone's
	path := filepath.Join(t.TempDir(), "all.csv")
	if err := os.WriteFile(path, []byte("before\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	os.Stdout = file
	defer func() { os.Stdout = stdout }()
	out, err := CreateOut("/dev/stdout")
	if err != nil {
		t.Fatal(err)
	}
	if _, err = out.WriteString("ours\n"); err == nil {
		err = out.Commit()
	}
	if _, failed := file.WriteString("after\n"); err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	if got, bad := os.ReadFile(path); bad != nil || string(got) != "before\nours\nafter\n" {
		t.Errorf("%q, %v", got, bad)
	}
}
