package memo

import (
	"bytes"
	"math"
	"testing"
)

// Ensure that what is written reads back.
func TestRoundTrip(t *testing.T) {
	b := Bool(Bool(nil, true), false)
	b = Float(Int(Uint(b, math.MaxUint64), math.MinInt64), math.Inf(-1))
	b = NoPart(Part(Text(b, "a\x00"), "p/1", []byte{7}))
	r := NewReader(b)
	if x, y := r.Bool(), r.Bool(); !x || y {
		t.Error(x, y)
	}
	if x, y, z := r.Uint(math.MaxUint64), r.Int(math.MinInt64, 0), r.Float(); x != math.MaxUint64 ||
		y != math.MinInt64 || !math.IsInf(z, -1) {
		t.Error(x, y, z)
	}
	if s := r.Text(); s != "a\x00" {
		t.Errorf("%q", s)
	}
	if p, ok := r.Part("p/1"); !ok || !bytes.Equal(p, []byte{7}) {
		t.Error(p, ok)
	}
	if p, ok := r.Part("q/1"); ok || p != nil {
		t.Error(p, ok)
	}
	if err := r.End(); err != nil || r.Len() != 0 {
		t.Error(err)
	}
}

// Ensure that the first thing wrong is reported, and sticks, and that all is zero from then on.
func TestErrors(t *testing.T) {
	for want, c := range map[string]struct {
		b    []byte
		read func(*Reader)
	}{
		"cut short":         {[]byte{0x80}, func(r *Reader) { r.Uint(9) }},
		"5, want at most 4": {Uint(nil, 5), func(r *Reader) { r.Uint(4) }},
		"-5, want -4..4":    {Int(nil, -5), func(r *Reader) { r.Int(-4, 4) }},
		"2, want at most 1": {[]byte{2}, func(r *Reader) { r.Bool() }},
		"3 things in 5 bytes": {append(Uint(nil, 3), make([]byte, 5)...), func(r *Reader) {
			r.Count(2)
		}},
		"1 bytes are left over":                     {[]byte{1, 2}, func(r *Reader) { r.Bool() }},
		"9 things in 1 bytes":                       {[]byte{9, 1}, func(r *Reader) { r.Text() }},
		"found nothing more, want memory of mlfq/1": {nil, func(r *Reader) { r.Part("mlfq/1") }},
		`found memory of "mlfq/1", want that of mlfq/2`: {Part(nil, "mlfq/1", nil), func(r *Reader) {
			r.Part("mlfq/2")
		}},
		`found memory of "learned-skew/1", want no more`: {Part(nil, "learned-skew/1", nil), func(r *Reader) {
			_ = r.EndParts()
		}},
		"cut short\n": {make([]byte, 7), func(r *Reader) {
			if r.Float(); r.Uint(9) != 0 || r.Int(1, 9) != 0 || r.Float() != 0 || r.Text() != "" || r.Count(1) != 0 ||
				r.Rest() != nil || r.Bool() {
				panic("something was read")
			}
		}},
	} {
		r := NewReader(c.b)
		c.read(r)
		if err := r.End(); err == nil || err.Error() != string(bytes.TrimSpace([]byte(want))) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// FuzzReader reads anything, in the order that the first bytes say.
func FuzzReader(f *testing.F) {
	f.Add([]byte{0, 1, 2}, Part(Float(Uint(Int(nil, -3), 5), 1), "a/1", []byte("b")))
	f.Fuzz(func(t *testing.T, order, b []byte) {
		r := NewReader(b)
		for _, x := range order {
			was := r.Len()
			switch x % 8 {
			case 0:
				r.Uint(uint64(x))
			case 1:
				r.Int(-int64(x), int64(x))
			case 2:
				r.Float()
			case 3:
				if len(r.Text()) > was {
					t.Fatal("more than there is")
				}
			case 4:
				if n := r.Count(int(x)); n*int(x) > r.Len() {
					t.Fatalf("%d things of %d bytes in %d", n, x, r.Len())
				}
			case 5:
				r.Part("a/1")
			case 6:
				r.Bool()
			case 7:
				r.Rest()
			}
			if r.Len() > was {
				t.Fatal("it grew")
			}
		}
		_ = r.EndParts()
	})
}
