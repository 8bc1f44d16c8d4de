package shim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Ensure that scripts of any text and name are kept as they are, alike ones once, that what was altered is refused and
// can be kept again, and that what a kill leaves is none that can be had, and is removed.
func TestScriptsKept(t *testing.T) {
	t.Parallel()
	s := State(t.TempDir())
	r := rand.New(rand.NewPCG(1, 2))
	kept := make(map[string]string) // by digest, names
	for i := range 40 {
		name := []string{"run.sh", "a b", "line\nbreak", ".hidden", "-c", "ä"}[r.IntN(6)]
		text := make([]byte, r.IntN(2000))
		for k := range text {
			text[k] = byte(r.IntN(4)) // also alike ones
		}
		digest, err := s.KeepScript(name, text)
		if err != nil {
			t.Fatal(err)
		}
		again, err := s.KeepScript(name, text)
		path, lost := s.KeptScript(digest, name)
		b, unread := os.ReadFile(path)
		if bad := errors.Join(err, lost, unread); bad != nil || again != digest || string(b) != string(text) {
			t.Fatalf("%q: %v, %q next to %q", name, bad, again, digest)
		}
		kept[digest] = name
		if i%4 > 0 {
			continue
		}
		if err = os.WriteFile(path, append(b, 'x'), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err = s.KeptScript(digest, name); !errors.Is(err, ErrScriptLost) {
			t.Errorf("altered: %v", err)
		}
		if _, err = s.KeepScript(name, text); err != nil {
			t.Error(err)
		}
		if _, err = s.KeptScript(digest, name); err != nil {
			t.Errorf("kept again: %v", err)
		}
	}
	half := filepath.Join(string(s), snapshots, fmt.Sprint(unfinished, 1))
	if err := errors.Join(os.Mkdir(half, 0o700), os.WriteFile(filepath.Join(half, "run.sh"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	digests, left, err := s.Snapshots()
	if err != nil || len(digests) != len(kept) || !slices.Equal(left, []string{filepath.Base(half)}) {
		t.Fatalf("%d kept, left %q, %v; want %d", len(digests), left, err, len(kept))
	}
	for _, name := range append(digests, left...) {
		if _, err = s.DropSnapshot(name); err != nil {
			t.Error(err)
		}
	}
	if rest, _ := os.ReadDir(filepath.Join(string(s), snapshots)); len(rest) > 0 {
		t.Errorf("%v are there still", rest)
	}
}
