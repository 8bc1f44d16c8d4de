package main

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func someCheckpoint(step int) checkpoint {
	return checkpoint{
		Format: format, Step: step, Samples: 64 * step, Seed: 1, Width: 2, Batch: 64, Layers: shape,
		Weights: newModel(uint64(step), 1).weights,
	}
}

// Ensure that a cut file and one with any byte changed are found out, and that a whole one comes back as it was.
func TestDecode(t *testing.T) {
	want := someCheckpoint(70)
	data, err := want.encode()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := decode(data); err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("decode: %v, step %d, want what was encoded", err, got.Step)
	}
	for n := 0; n < len(data); n += 1 + n/20 {
		if _, err := decode(data[:n]); !errors.Is(err, errDamaged) {
			t.Errorf("first %d of %d bytes: error %v, want %v", n, len(data), err, errDamaged)
		}
		data[n] ^= 0x10
		if _, err := decode(data); !errors.Is(err, errDamaged) {
			t.Errorf("byte %d changed: error %v, want %v", n, err, errDamaged)
		}
		data[n] ^= 0x10
	}
	if _, err := decode(append(data, 0)); !errors.Is(err, errDamaged) {
		t.Errorf("a byte too many: error %v, want %v", err, errDamaged)
	}
}

// Ensure that two checkpoints stay, that a damaged newest one is skipped for the one before, and that saving goes on
// from there without losing that one.
func TestLoadFallsBack(t *testing.T) {
	dir := t.TempDir()
	for _, step := range []int{10, 20, 1_000_000_000} {
		if err := someCheckpoint(step).save(dir); err != nil {
			t.Fatal(err)
		}
	}
	wantSteps(t, dir, 20, 1_000_000_000)
	if err := os.Truncate(filepath.Join(dir, fileName(1_000_000_000)), 4096); err != nil {
		t.Fatal(err)
	}
	var warnings strings.Builder
	c, ok, err := load(dir, &warnings)
	if err != nil || !ok || c.Step != 20 || !strings.Contains(warnings.String(), "falling back") {
		t.Fatalf("load: step %d, %v, %v, warnings %q, want step 20 and a warning", c.Step, ok, err, warnings.String())
	}
	if err := someCheckpoint(25).save(dir); err != nil {
		t.Fatal(err)
	}
	wantSteps(t, dir, 20, 25)
}

func wantSteps(t *testing.T, dir string, want ...int) {
	t.Helper()
	if got, err := savedSteps(dir); err != nil || !slices.Equal(got, want) {
		t.Fatalf("checkpoints of steps %v, %v, want %v", got, err, want)
	}
}

// Ensure that neither an empty folder nor what a save that died left behind counts as a checkpoint.
func TestLoadNothing(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"unfinished", "step-1.ckpt", "step-000000001.ckpt.damaged", "failed-once"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok, err := load(dir, t.Output()); ok || err != nil {
		t.Errorf("load: %v, %v, want nothing", ok, err)
	}
}
