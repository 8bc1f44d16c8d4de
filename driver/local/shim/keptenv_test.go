package shim

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Ensure that an environment is kept once, for its owner alone, and is whole or lost: whatever was made of its file.
func TestKeptEnv(t *testing.T) {
	t.Parallel()
	s := State(t.TempDir())
	env := map[string]string{"A": "1\n2", "SECRET": "canary \x01é", "E": ""}
	digest := EnvDigest(env)
	path := filepath.Join(string(s), "env", digest)
	for range 2 {
		if err := s.KeepEnv(env); err != nil {
			t.Fatal(err)
		}
	}
	if list, err := s.KeptEnvs(); err != nil || !slices.Equal(list, []string{digest}) {
		t.Errorf("%q, %v", list, err)
	}
	for file, mode := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700 | os.ModeDir} {
		if info, err := os.Stat(file); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v, want %v", file, info.Mode(), err, mode)
		}
	}
	if got, err := s.KeptEnv(digest); err != nil || !maps.Equal(got, env) {
		t.Errorf("%q, %v", got, err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	spoiled := map[string]func() error{
		"cut":     func() error { return os.WriteFile(path, whole[:len(whole)/2], 0o600) },
		"empty":   func() error { return os.WriteFile(path, nil, 0o600) },
		"changed": func() error { return os.WriteFile(path, append([]byte(" "), whole...), 0o600) },
		"a link": func() error {
			return errors.Join(os.Remove(path), os.WriteFile(path+"x", whole, 0o600), os.Symlink(path+"x", path))
		},
		"gone": func() error { return os.Remove(path) },
	}
	for name, spoil := range spoiled {
		if err = spoil(); err != nil {
			t.Fatal(name, err)
		}
		if _, err = s.KeptEnv(digest); !errors.Is(err, ErrEnvLost) {
			t.Errorf("%s: %v, want that it is lost", name, err)
		}
		if err = s.KeepEnv(env); err != nil { // who submits it again mends it
			t.Fatal(name, err)
		}
		if got, failed := s.KeptEnv(digest); failed != nil || !maps.Equal(got, env) {
			t.Errorf("%s, mended: %q, %v", name, got, failed)
		}
	}
	if size, err := s.DropEnv(digest); err != nil || size != int64(len(whole)) || s.HasEnv(digest) {
		t.Errorf("%d bytes dropped, %v", size, err)
	}
}

// Ensure that what a job inherits counts less than what its order says after it, and more than what it says before.
func TestInherited(t *testing.T) {
	t.Parallel()
	s := State(t.TempDir())
	env := map[string]string{"B": "inherited", "A": "inherited", "C": "inherited"}
	if err := s.KeepEnv(env); err != nil {
		t.Fatal(err)
	}
	o := &Order{State: s, Env: []string{"A=base", "C=own"}, Inherit: EnvDigest(env), InheritAt: 1}
	want := []string{"A=base", "A=inherited", "B=inherited", "C=inherited", "C=own"}
	if err := o.inherited(); err != nil || !slices.Equal(o.Env, want) {
		t.Errorf("%q, %v, want %q", o.Env, err, want)
	}
}
