// Package memo writes and reads what the parts of a system remember: numbers and texts one behind the other, in parts
// that start with the name and version of their format. It writes no types: reader and writer agree on the order.
package memo

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Bool appends x as one byte.
func Bool(b []byte, x bool) []byte {
	if x {
		return append(b, 1)
	}
	return append(b, 0)
}

// Uint appends x, in the fewer bytes the smaller it is.
func Uint(b []byte, x uint64) []byte { return binary.AppendUvarint(b, x) }

// Int appends x, in the fewer bytes the nearer to 0 it is.
func Int(b []byte, x int64) []byte { return binary.AppendVarint(b, x) }

// Float appends the 8 bytes of x, which any number survives.
func Float(b []byte, x float64) []byte {
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
}

// Text appends s behind its length.
func Text[T ~string | ~[]byte](b []byte, s T) []byte { return append(Uint(b, uint64(len(s))), s...) }

// Part appends what one part remembers behind the name and version of its format, such as "mlfq/1", which is not "".
func Part(b []byte, format string, part []byte) []byte { return Text(Text(b, format), part) }

// NoPart appends that a part remembers nothing.
func NoPart(b []byte) []byte { return Text(b, "") }

// Reader takes off what was written. The first thing wrong sticks: from then on all it gives is zero.
type Reader struct {
	b   []byte
	err error
}

// NewReader reads b, of which it keeps and gives back parts.
func NewReader(b []byte) *Reader { return &Reader{b: b} }

var errShort = errors.New("cut short")

// Err returns the first thing wrong so far.
func (r *Reader) Err() error { return r.err }

// End returns the first thing wrong, which may be that something is left over.
func (r *Reader) End() error {
	if len(r.b) > 0 {
		r.Want(false, "%d bytes are left over", len(r.b))
	}
	return r.err
}

// Want notes what is wrong unless ok. Where much is read, it is to be called for what is wrong alone: its arguments
// cost more than reading.
func (r *Reader) Want(ok bool, format string, args ...any) {
	if !ok && r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// Rest takes all that is left.
func (r *Reader) Rest() []byte { return r.take(len(r.b)) }

// Len returns how many bytes are left.
func (r *Reader) Len() int { return len(r.b) }

func (r *Reader) take(n int) []byte {
	if r.err == nil && n > len(r.b) {
		r.err = errShort
	}
	if r.err != nil {
		return nil
	}
	x := r.b[:n:n]
	r.b = r.b[n:]
	return x
}

// Bool reads what Bool wrote.
func (r *Reader) Bool() bool { return r.Byte(1) == 1 }

// Byte reads a byte up to most.
func (r *Reader) Byte(most byte) byte {
	x := r.take(1)
	if x == nil {
		return 0
	}
	if x[0] > most {
		r.Want(false, "%d, want at most %d", x[0], most)
	}
	return given(r, x[0])
}

// Uint reads a number up to most.
func (r *Reader) Uint(most uint64) uint64 {
	x, n := binary.Uvarint(r.b)
	if r.skip(n) && x > most {
		r.Want(false, "%d, want at most %d", x, most)
	}
	return given(r, x)
}

// Int reads a number from least to most.
func (r *Reader) Int(least, most int64) int64 {
	x, n := binary.Varint(r.b)
	if r.skip(n) && (x < least || x > most) {
		r.Want(false, "%d, want %d..%d", x, least, most)
	}
	return given(r, x)
}

// skip passes over the n bytes of a number, none or fewer meaning that it is cut short or too large.
func (r *Reader) skip(n int) bool {
	if n <= 0 && r.err == nil {
		r.err = errShort
	}
	return r.err == nil && r.take(n) != nil
}

// given returns x unless something is wrong.
func given[T any](r *Reader, x T) T {
	if r.err != nil {
		var zero T
		return zero
	}
	return x
}

// Count reads how many things follow, each of which takes so many bytes at least: never more than can be there.
func (r *Reader) Count(bytes int) int {
	n := r.Uint(math.MaxInt64)
	if n > uint64(len(r.b)/bytes) {
		r.Want(false, "%d things in %d bytes", n, len(r.b))
	}
	return int(given(r, n))
}

// Float reads what Float wrote.
func (r *Reader) Float() float64 {
	x := r.take(8)
	if x == nil {
		return 0
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(x))
}

// Text reads what Text wrote.
func (r *Reader) Text() string { return string(r.Bytes()) }

// Bytes reads what Text wrote, without a copy.
func (r *Reader) Bytes() []byte { return r.take(r.Count(1)) }

// Part reads a part of the given format. ok is false if nothing was remembered, or something is wrong: a part of
// another format is.
func (r *Reader) Part(format string) (part []byte, ok bool) {
	if r.err == nil && len(r.b) == 0 {
		r.err = fmt.Errorf("found nothing more, want memory of %s", format)
	}
	found := r.Bytes()
	if r.err != nil || len(found) == 0 {
		return nil, false
	}
	if string(found) != format {
		r.Want(false, "found memory of %.80q, want that of %s", found, format)
	}
	part = r.Bytes()
	return part, r.err == nil
}

// EndParts is End where parts were read: what is left over is the memory of a part that is not there.
func (r *Reader) EndParts() error {
	if r.err == nil && len(r.b) > 0 {
		found := r.Text()
		r.Want(false, "found memory of %.80q, want no more", found)
	}
	return r.err
}
