package shim

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// numbered writes n lines of 16 bytes, which hold their numbers, from number first on.
func numbered(t *testing.T, f *os.File, first, n int) {
	t.Helper()
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, "line %10d\n", first+i)
	}
	if _, err := f.Write(b.Bytes()); err != nil {
		t.Fatal(err)
	}
}

// Ensure that the middle of an output is given back once it takes too much, that its start and its end stay where they
// were, as written, and that what is appended later stands behind them.
func TestOutputCap(t *testing.T) {
	path := filepath.Join(t.TempDir(), "output.log")
	out, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	const limit, perMB = 32 << 20, 1 << 16
	c := outputCap{file: out, max: limit}
	lines := 0
	for range 100 {
		numbered(t, out, lines, perMB)
		lines += perMB
		c.look()
		size, taken, _, bad := takes(out)
		if bad != nil || size != int64(lines)*16 || taken > limit {
			t.Fatalf("%d lines: %d bytes, of which %d are kept, %v; want at most %d", lines, size, taken, bad, limit)
		}
	}
	in, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	_, hole, err := Data(in, 0)
	if err != nil || hole != limit/8 {
		t.Fatalf("the start has %d bytes, %v, want %d", hole, err, limit/8)
	}
	tail, end, err := Data(in, hole)
	if size := int64(lines) * 16; err != nil || end < size || tail > size-limit/2 || tail < size-limit {
		t.Fatalf("the end starts at %d of %d, %v", tail, size, err)
	}
	for _, at := range []int64{0, 16, hole - 16, tail, int64(lines)*16 - 16} {
		var b [16]byte
		if _, err := in.ReadAt(b[:], at); err != nil || string(b[:]) != fmt.Sprintf("line %10d\n", at/16) {
			t.Errorf("at %d: %q, %v", at, b, err)
		}
	}
}

// Ensure that an output leaves room on its disk whatever it may take, and keeps its least all the same.
func TestOutputLimit(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct{ max, taken, free, want int64 }{
		{0, 100 * mib, 1000 * mib, 1004 * mib},
		{512 * mib, 100 * mib, 1000 * mib, 512 * mib},
		{512 * mib, 100 * mib, 100 * mib, 104 * mib},
		{0, 132 * mib, 0, 36 * mib},
		{0, 1 * mib, 0, leastKept},
		{512 * mib, 70 * mib, 0, leastKept},
	} {
		if got := (&outputCap{max: c.max}).limit(c.taken, c.free); got != c.want {
			t.Errorf("max %d, taken %d, free %d: %d, want %d", c.max, c.taken, c.free, got, c.want)
		}
	}
}
