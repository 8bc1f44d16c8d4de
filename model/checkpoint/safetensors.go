package checkpoint

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// maxHeader is the largest header that the reference implementation of safetensors takes.
const maxHeader = 100_000_000

// safeTypes are the types of safetensors: bits of an element, and whether it is a number with a fraction.
var safeTypes = map[string]struct {
	bits  int64
	float bool
}{
	"BOOL": {8, false}, "U8": {8, false}, "I8": {8, false}, "U16": {16, false}, "I16": {16, false}, "U32": {32, false},
	"I32": {32, false}, "U64": {64, false}, "I64": {64, false}, "F4": {4, true}, "F6_E2M3": {6, true},
	"F6_E3M2": {6, true},
	"F8_E4M3": {8, true}, "F8_E5M2": {8, true}, "F8_E8M0": {8, true}, "F16": {16, true}, "BF16": {16, true},
	"F32": {32, true}, "F64": {64, true}, "C64": {64, true},
}

// safeTensor is an entry of the header.
type safeTensor struct {
	Tensor
	begin, end int64 // after the header
}

// readSafetensors reads the header of n bytes, which follows its length. The format: eight bytes of length, a JSON
// object of name -> {dtype, shape, data_offsets}, then the data, which the tensors cover without holes.
func readSafetensors(r io.ReaderAt, size int64, n uint64) ([]Tensor, error) {
	const before = 8
	if n > maxHeader || int64(n) > size-before {
		return nil, fmt.Errorf("a header of %d bytes, want at most %d, and at most the %d that follow", n, maxHeader,
			size-before)
	}
	p := safeParser{names: make(map[string]bool)}
	p.Decoder = json.NewDecoder(bufio.NewReader(io.NewSectionReader(r, before, int64(n))))
	p.UseNumber()
	if err := p.header(); err != nil {
		return nil, fmt.Errorf("header: byte %d: %w", before+p.InputOffset(), err)
	}
	return p.placed(size - before - int64(n))
}

// safeParser reads a header token by token: nothing is kept but what is asked for.
type safeParser struct {
	*json.Decoder
	names   map[string]bool
	tensors []safeTensor
}

// placed checks that the tensors cover size bytes of data, and returns them by where they lie.
func (p *safeParser) placed(size int64) ([]Tensor, error) {
	slices.SortStableFunc(p.tensors, func(a, b safeTensor) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end))
	})
	at := int64(0)
	tensors := make([]Tensor, len(p.tensors))
	for i := range p.tensors {
		t := &p.tensors[i]
		if t.begin != at {
			return nil, fmt.Errorf("tensor %s: data from %d on, want from %d, where the one before ends", quote(t.Name),
				t.begin, at)
		}
		at, tensors[i] = t.end, t.Tensor
	}
	if at != size {
		return nil, fmt.Errorf("tensors of %d bytes, want the %d that follow the header", at, size)
	}
	return tensors, nil
}

func (p *safeParser) header() error {
	err := p.object("the header", func(name string) error {
		switch {
		case p.names[name]:
			return fmt.Errorf("tensor %s given again, want it once", quote(name))
		case len(p.tensors) == MaxTensors:
			return fmt.Errorf("more than %d tensors, want fewer", MaxTensors)
		}
		p.names[name] = true
		if name == "__metadata__" {
			return p.object(name, func(string) error { _, err := p.text("a value of __metadata__"); return err })
		}
		t := safeTensor{Tensor: Tensor{Name: name}}
		if err := p.tensor(&t); err != nil {
			return fmt.Errorf("tensor %s: %w", quote(name), err)
		}
		p.tensors = append(p.tensors, t)
		return nil
	})
	if err != nil {
		return err
	}
	if _, err = p.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("something after the header's object, want nothing but blanks")
	}
	return nil
}

// tensor reads an entry.
func (p *safeParser) tensor(t *safeTensor) error {
	var kind string
	var shape, data []int64
	seen := make(map[string]bool, 3)
	err := p.object("an entry", func(key string) (err error) {
		if seen[key] {
			return fmt.Errorf("%s given again, want it once", key)
		}
		seen[key] = true
		switch key {
		case "dtype":
			kind, err = p.text(key)
		case "shape":
			shape, err = p.wholes(key)
		case "data_offsets":
			data, err = p.wholes(key)
		default:
			return fmt.Errorf("key %s, want dtype, shape and data_offsets", quote(key))
		}
		return err
	})
	if err != nil {
		return err
	}
	if len(seen) != 3 || len(data) != 2 {
		return fmt.Errorf("%d of its keys, %d offsets, want dtype, shape and two data_offsets", len(seen), len(data))
	}
	return t.settle(kind, shape, data)
}

// settle checks that a tensor has the bytes that its type and shape need.
func (t *safeTensor) settle(kind string, shape, data []int64) error {
	of, known := safeTypes[kind]
	if !known {
		return fmt.Errorf("type %s, want one of safetensors", quote(kind))
	}
	n, ok := product(shape)
	if !ok || n > math.MaxInt64/of.bits {
		return fmt.Errorf("shape of more than %d elements, want fewer", int64(maxBytes))
	}
	bytes := n * of.bits
	if bytes%8 != 0 || data[1]-data[0] != bytes/8 {
		return fmt.Errorf("data %d..%d of %s %v, want %v bytes", data[0], data[1], kind, shape, float64(bytes)/8)
	}
	t.begin, t.end, t.Bytes, t.Float = data[0], data[1], bytes/8, of.float
	return nil
}

// object reads an object; each is called at the value of each key, and takes it in.
func (p *safeParser) object(what string, each func(key string) error) error {
	if err := p.delim(what, '{'); err != nil {
		return err
	}
	for p.More() {
		key, err := p.text("a key")
		if err != nil {
			return err
		}
		if err := each(key); err != nil {
			return err
		}
	}
	return p.delim("its end", '}')
}

func (p *safeParser) delim(what string, want json.Delim) error {
	t, err := p.Token()
	if err != nil {
		return whole(err)
	}
	if t != want {
		return fmt.Errorf("%s is %s, want %v", what, quote(fmt.Sprint(t)), want)
	}
	return nil
}

func (p *safeParser) text(what string) (string, error) {
	t, err := p.Token()
	if err != nil {
		return "", whole(err)
	}
	s, ok := t.(string)
	if !ok {
		return "", fmt.Errorf("%s is %s, want a text", what, quote(fmt.Sprint(t)))
	}
	return s, nil
}

// maxRank bounds the numbers of a list; torch itself allows 64 dimensions.
const maxRank = 64

// wholes reads a list of whole numbers >= 0.
func (p *safeParser) wholes(what string) ([]int64, error) {
	if err := p.delim(what, '['); err != nil {
		return nil, err
	}
	list := []int64{}
	for p.More() {
		t, err := p.Token()
		if err != nil {
			return nil, whole(err)
		}
		number, ok := t.(json.Number)
		n, err := number.Int64()
		if !ok || err != nil || n < 0 || len(list) == maxRank {
			return nil, fmt.Errorf("%s with %s, want at most %d whole numbers >= 0", what, quote(fmt.Sprint(t)),
				maxRank)
		}
		list = append(list, n)
	}
	return list, p.delim("its end", ']')
}

// whole makes the end of a file within a value an error that says so.
func whole(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
