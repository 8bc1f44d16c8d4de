package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/trainyard/trainyard/model/skew"
)

// Limits on what is read, far above any model we know of.
const (
	MaxTensors = 1 << 18
	maxBytes   = 1 << 50 // of one tensor
)

// Tensor is one tensor of a checkpoint.
type Tensor struct {
	Name  string // its path in the file, joined by dots
	Bytes int64  // as stored
	// of a floating-point or complex type, so that it may be trained; else an index, a mask or a quantised value
	Float bool
}

// Read returns the tensors of a checkpoint of size bytes, in the order in which the file lists them: of safetensors, by
// where they lie; of torch.save, as they were saved, each storage once, without those of an optimiser. The kind of file
// is reported by its first bytes. Errors start with "checkpoint: ", and name the file as name.
func Read(r io.ReaderAt, size int64, name string) ([]Tensor, error) {
	tensors, err := read(r, size)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %s: %w", name, err)
	}
	return tensors, nil
}

// Is reports whether a file of size bytes that starts with head is for Read, and no text. It needs nine bytes.
func Is(head []byte, size int64) bool {
	if len(head) < 9 {
		return false
	}
	header := binary.LittleEndian.Uint64(head) // of text it is larger than any file
	return string(head[:4]) == "PK\x03\x04" || head[0] == opProto && head[1] == 2 || head[8] == '{' &&
		header <= uint64(size)
}

// wantedKind is what the first bytes should say.
const wantedKind = "safetensors, or what torch.save of PyTorch 1.6 or later writes"

func read(r io.ReaderAt, size int64) ([]Tensor, error) {
	var head [9]byte
	if size < int64(len(head)) {
		return nil, fmt.Errorf("%d bytes, want %s", size, wantedKind)
	}
	if err := readAt(r, head[:], 0); err != nil {
		return nil, err
	}
	switch {
	case string(head[:4]) == "PK\x03\x04":
		return readTorch(r, size)
	case head[8] == '{':
		return readSafetensors(r, size, binary.LittleEndian.Uint64(head[:8]))
	case head[0] == opProto && head[1] == 2:
		return nil, errors.New("a pickle without an archive, as old versions of torch.save wrote it, want " +
			wantedKind)
	}
	return nil, fmt.Errorf("starts with %q, want %s", head[:4], wantedKind)
}

// readAt fills b from r.
func readAt(r io.ReaderAt, b []byte, at int64) error {
	if n, err := r.ReadAt(b, at); n < len(b) {
		if err == nil || errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return fmt.Errorf("byte %d: %w", at+int64(n), err)
	}
	return nil
}

// Profile returns the model profile of tensors: those that may be trained and have bytes, in their order. It is an
// error if there is none. Models in several files are profiled by all their tensors together.
func Profile(tensors []Tensor) (skew.Profile, error) {
	var p skew.Profile
	for _, t := range tensors {
		if t.Float && t.Bytes > 0 {
			p.Tensors = append(p.Tensors, float64(t.Bytes)/skew.MB)
		}
	}
	if len(p.Tensors) == 0 {
		return p, fmt.Errorf("checkpoint: %d tensors, none of them of a floating-point type, want at least one",
			len(tensors))
	}
	return p, nil
}

// product returns the number of elements of a shape, and false if that is out of bounds.
func product(shape []int64) (int64, bool) {
	n := int64(1)
	for _, d := range shape {
		switch {
		case d < 0 || d > maxBytes:
			return 0, false
		case d == 0:
			return 0, true
		case n > maxBytes/d:
			return 0, false
		}
		n *= d
	}
	return n, true
}

// quote quotes a text from a file for an error, cut to a length fit to print.
func quote(text string) string {
	const longest = 60
	if len(text) > longest {
		text = text[:longest] + "..."
	}
	return strconv.Quote(text)
}
