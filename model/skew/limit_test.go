package skew

import (
	"bytes"
	"math"
	"math/rand"
	"slices"
	"testing"
)

// observe adds n observations of skew and slow-down.
func observe(l *Limit, n int, skew, slowdown float64) {
	for range n {
		l.Observe(skew, slowdown)
	}
}

func TestLimitFit(t *testing.T) {
	tests := []struct {
		name string
		feed func(l *Limit)
		want float64
	}{
		{"nothing", func(*Limit) {}, PackLimit},
		{"7 slow, 8 fine: too few", func(l *Limit) { observe(l, 7, 0.9, 2); observe(l, 8, 0.1, 1) }, PackLimit},
		{"8 slow, 7 fine: too few", func(l *Limit) { observe(l, 8, 0.9, 2); observe(l, 7, 0.1, 1) }, PackLimit},
		{"8 and 8: middle of the gap", func(l *Limit) { observe(l, 8, 0.75, 2); observe(l, 8, 0.25, 1) }, 0.5},
		{"exactly 1.1 is not slow", func(l *Limit) { observe(l, 8, 0.75, 1.11); observe(l, 8, 0.25, 1.1) }, 0.5},
		{"one stray on either side", func(l *Limit) {
			observe(l, 9, 0.75, 2)
			observe(l, 9, 0.25, 1)
			observe(l, 1, 0.125, 2)
			observe(l, 1, 1, 1)
		}, 0.5},
		{"two gaps alike: the wider", func(l *Limit) {
			observe(l, 8, 0.25, 1)
			observe(l, 1, 0.375, 2) // these two misjudge one, wherever the limit is
			observe(l, 1, 0.5, 1)
			observe(l, 8, 1, 2)
		}, 0.75},
		{"two gaps alike and as wide: the lower", func(l *Limit) {
			observe(l, 8, 0.25, 1)
			observe(l, 1, 0.5, 2)
			observe(l, 1, 0.75, 1)
			observe(l, 8, 1, 2)
		}, 0.375},
		{"all slow but a few of the same skew: consolidate",
			func(l *Limit) { observe(l, 20, 0.5, 2); observe(l, 8, 0.5, 1) }, 0.25},
		{"all fine but a few of the same skew: spread",
			func(l *Limit) { observe(l, 8, 0.5, 2); observe(l, 20, 0.5, 1) }, 0.75},
		{"no skew is never consolidated", func(l *Limit) { observe(l, 20, 0, 2); observe(l, 8, 0, 1) }, 0.5},
	}
	for _, tt := range tests {
		var l Limit
		tt.feed(&l)
		if got := l.Fit(); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// Ensure that no limit misjudges fewer observations than the fitted one, by trying them all.
func TestLimitFitAgainstTwin(t *testing.T) {
	rng := rand.New(rand.NewSource(11))
	for range 300 {
		var l Limit
		for range 20 + rng.Intn(100) {
			skew := float64(rng.Intn(20)) / 19
			l.Observe(skew, 1+0.3*skew*rng.Float64())
		}
		slow, fine := l.Count()
		if slow < MinPerSide || fine < MinPerSide {
			continue
		}
		misjudged := func(limit float64) (n int) {
			for _, o := range l.ring {
				if (o.skew > limit) != o.slow {
					n++
				}
			}
			return n
		}
		got := l.Fit()
		for i := range 40 {
			if try := float64(i) / 38; misjudged(try) < misjudged(got) {
				t.Fatalf("limit %v misjudges %d, but %v only %d", got, misjudged(got), try, misjudged(try))
			}
		}
		if got < 0 || got > 1 {
			t.Fatalf("limit %v, want in 0..1", got)
		}
	}
}

// Ensure that the newest observations replace the oldest.
func TestLimitForgets(t *testing.T) {
	var l Limit
	observe(&l, LimitCount, 0.5, 2)
	observe(&l, LimitCount/2, 0.25, 1)
	if slow, fine := l.Count(); slow != LimitCount/2 || fine != LimitCount/2 {
		t.Errorf("%d slow and %d fine, want half and half of %d", slow, fine, LimitCount)
	}
	if got := l.Fit(); got != 0.375 {
		t.Errorf("limit %v, want 0.375", got)
	}
}

// Ensure that Load of what Save wrote gives the same bytes, the same fit and the same future.
func TestLimitRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewSource(12))
	var l Limit
	for n := range LimitCount + 300 {
		if n%89 == 0 || n == LimitCount {
			var m Limit
			saved := l.Save([]byte("x"))[1:]
			if err := m.Load(saved); err != nil {
				t.Fatalf("after %d: %v", n, err)
			}
			if !bytes.Equal(m.Save(nil), saved) || m.Fit() != l.Fit() {
				t.Fatalf("after %d: the copy differs", n)
			}
			l = m
		}
		l.Observe(rng.Float64(), 0.9+rng.Float64()/2)
	}
}

func TestLimitLoadRefuses(t *testing.T) {
	var l Limit
	observe(&l, 3, 0.5, 2)
	good := l.Save(nil)
	change := func(at int, to byte) []byte {
		b := slices.Clone(good)
		b[at] = to
		return b
	}
	bad := map[string][]byte{
		"nothing": nil, "format": change(0, 7), "count": change(1, 4), "slow": change(len(good)-1, 2),
		"skew": change(len(good)-2, 0x7f), "trailing byte": append(slices.Clone(good), 0),
	}
	for n := range good {
		bad[string(rune('0'+n))+" bytes"] = good[:n]
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
}

func TestLimitObservePanics(t *testing.T) {
	nan := math.NaN()
	for _, x := range [][2]float64{{-0.1, 1}, {1.1, 1}, {nan, 1}, {0.5, 0}, {0.5, nan}, {0.5, math.Inf(1)}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("skew %v, slow-down %v: no panic", x[0], x[1])
				}
			}()
			new(Limit).Observe(x[0], x[1])
		}()
	}
}
