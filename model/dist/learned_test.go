package dist

import (
	"bytes"
	"math"
	"math/rand"
	"slices"
	"testing"
)

// Ensure that Version rises at the counts its comment states: at 16, then by an eighth, then every 128.
func TestLearnedVersion(t *testing.T) {
	var l Learned
	var rises []int64
	for i := range 1600 {
		was := l.Version()
		l.Observe(float64(i))
		switch l.Version() - was {
		case 0:
		case 1:
			rises = append(rises, l.Count())
		default:
			t.Fatalf("version went from %d to %d", was, l.Version())
		}
	}
	want := []int64{16, 18, 21, 24, 27, 31, 35, 40, 45, 51, 58, 66, 75, 85, 96, 108, 122, 138, 156, 176, 198, 223, 251,
		283, 319, 359, 404, 455, 512, 576, 648, 729, 821, 924, 1040, 1168, 1296, 1424, 1552}
	if !slices.Equal(rises, want) {
		t.Errorf("version rises at %v,\nwant %v", rises, want)
	}
}

// Ensure that Sample always equals that of a dumb twin which keeps everything: the newest Window of what had been
// observed when Version last rose.
func TestLearnedSampleAgainstTwin(t *testing.T) {
	rng := rand.New(rand.NewSource(2))
	var l Learned
	var all []float64
	upTo, version := 0, int64(0)
	for range 3*Window + 77 {
		size := math.Floor(rng.ExpFloat64() * 100)
		l.Observe(size)
		all = append(all, size)
		if l.Version() != version {
			version, upTo = l.Version(), len(all)
		}
		if len(all)%61 != 0 {
			continue
		}
		if upTo == 0 {
			if l.Sample() != nil {
				t.Fatal("a sample before the first version")
			}
			continue
		}
		want := slices.Clone(all[max(upTo-Window, 0):upTo])
		slices.Sort(want)
		if got := l.Sample().Sizes(); !slices.Equal(got, want) {
			t.Fatalf("after %d: sample differs from the twin's", len(all))
		}
	}
}

// Ensure that Load of what Save wrote gives the same bytes, the same sample and the same future, at every stage.
func TestLearnedRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewSource(3))
	var l Learned
	for n := range 2*ringSize + 50 {
		if n%97 == 0 || n == FirstCount || n == ringSize {
			var m Learned
			saved := l.Save([]byte("before"))[len("before"):]
			if err := m.Load(saved); err != nil {
				t.Fatalf("after %d: %v", n, err)
			}
			if !bytes.Equal(m.Save(nil), saved) {
				t.Fatalf("after %d: saved bytes differ", n)
			}
			if m.Version() > 0 && !slices.Equal(m.Sample().Sizes(), l.Sample().Sizes()) {
				t.Fatalf("after %d: samples differ", n)
			}
			l = m // the future of the copy is tested from here on
		}
		l.Observe(rng.Float64())
	}
}

func TestLearnedLoadRefuses(t *testing.T) {
	var l Learned
	for i := range 20 {
		l.Observe(float64(i))
	}
	good := l.Save(nil)
	nan := slices.Clone(good)
	copy(nan[len(nan)-8:], []byte{1, 0, 0, 0, 0, 0, 0xf8, 0x7f})
	bad := map[string][]byte{
		"nothing":            nil,
		"other format":       append([]byte{9}, good[1:]...),
		"cut count":          good[:2],
		"cut sizes":          good[:len(good)-1],
		"trailing byte":      append(slices.Clone(good), 0),
		"NaN":                nan,
		"version without 16": {learnedFormat, 0, 0, 1},
		"rise overdue":       {learnedFormat, 16, 0, 0},
		"rebuilt after seen": {learnedFormat, 16, 17, 1},
	}
	for name, b := range bad {
		m := l
		if err := m.Load(b); err == nil {
			t.Errorf("%s: no error", name)
		}
		if !bytes.Equal(m.Save(nil), good) {
			t.Errorf("%s: the state changed", name)
		}
	}
	for n := range good {
		if err := new(Learned).Load(good[:n]); err == nil {
			t.Errorf("the first %d of %d bytes were loaded", n, len(good))
		}
	}
}

func TestObservePanics(t *testing.T) {
	for _, size := range []float64{-1, math.NaN(), math.Inf(1)} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%v: no panic", size)
				}
			}()
			new(Learned).Observe(size)
		}()
	}
}
