package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// torchTypes are the types of storages and of elements by the name that torch gives them: bytes of an element, and
// whether it is a number with a fraction.
var torchTypes = map[string]struct {
	bytes int64
	float bool
}{
	"FloatStorage": {4, true}, "DoubleStorage": {8, true}, "HalfStorage": {2, true}, "BFloat16Storage": {2, true},
	"ComplexFloatStorage": {8, true}, "ComplexDoubleStorage": {16, true}, "LongStorage": {8, false},
	"IntStorage":   {4, false},
	"ShortStorage": {2, false}, "CharStorage": {1, false}, "ByteStorage": {1, false}, "BoolStorage": {1, false},
	"QInt8Storage": {1, false}, "QUInt8Storage": {1, false}, "QInt32Storage": {4, false}, "QUInt4x2Storage": {1, false},
	"QUInt2x4Storage": {1, false}, "uint16": {2, false}, "uint32": {4, false}, "uint64": {8, false},
	"float8_e4m3fn": {1, true},
	"float8_e5m2":   {1, true}, "float8_e4m3fnuz": {1, true}, "float8_e5m2fnuz": {1, true}, "float8_e8m0fnu": {1, true},
}

// readTorch reads what torch.save writes: an archive of data.pkl, in which tensors are calls of torch._utils with
// storages named by a key, and of data/KEY, the bytes of each storage.
//
// Source: PyTorch documentation, "Serialization semantics"; torch/serialization.py and torch/_utils.py for the calls.
func readTorch(r io.ReaderAt, size int64) ([]Tensor, error) {
	a, err := openArchive(r, size)
	if err != nil {
		return nil, err
	}
	data, dir, err := a.pickle()
	if err != nil {
		return nil, err
	}
	root, err := unpickle(data)
	if err != nil {
		return nil, err
	}
	sizes := a.storages(dir)
	for _, part := range models(root) {
		c := collector{sizes: sizes, walked: make(map[*box]bool), taken: make(map[tensorRef]bool)}
		if err := c.collect(part, "", 0); err != nil {
			return nil, err
		}
		if len(c.tensors) > 0 {
			return c.tensors, nil
		}
	}
	return nil, nil
}

// persistent pushes what torch calls a persistent id: ("storage", class, key, place, elements).
func (m *machine) persistent(id []value) {
	if len(id) < 5 || id[0].text != "storage" || id[2].kind != text || id[4].kind != number {
		m.push(value{})
		return
	}
	_, class, _ := strings.Cut(id[1].text, " ")
	m.push(value{kind: storage, box: &box{array: &tensorRef{key: id[2].text, kind: class, length: id[4].n}}})
}

// call pushes what a call makes. The calls that torch.save writes are known; any other makes an object.
func (m *machine) call(f value, args []value) {
	switch {
	case f.kind != global:
	case f.text == "collections OrderedDict":
		m.make(table, nil)
		return
	case f.text == "torch._utils _rebuild_parameter", f.text == "torch._utils _rebuild_parameter_with_state":
		if len(args) > 0 {
			m.push(args[0])
			return
		}
	case f.text == "torch._tensor _rebuild_from_type_v2":
		if len(args) > 2 && args[0].text != f.text { // which would not end
			m.call(args[0], args[2].list())
			return
		}
	case f.text == "torch._utils _rebuild_tensor_v3":
		if len(args) > 6 && placed(args) {
			m.tensor(args[0].box.array.of(args[6].text), args[1].n, args[2].box.items)
			return
		}
	case strings.HasPrefix(f.text, "torch._utils _rebuild_"):
		if placed(args) {
			m.tensor(*args[0].box.array, args[1].n, args[2].box.items)
			return
		}
	}
	m.make(other, nil)
}

// placed reports whether args start with a storage, a place in it and a shape.
func placed(args []value) bool {
	return len(args) > 2 && args[0].kind == storage && args[1].kind == number && args[2].kind == list
}

// of returns a storage without a type as one of elements of a type, "torch float8_e4m3fn".
func (t tensorRef) of(name string) tensorRef {
	_, t.kind, _ = strings.Cut(name, " ")
	t.length /= max(torchTypes[t.kind].bytes, 1)
	return t
}

// tensor pushes a tensor of a shape in a storage.
func (m *machine) tensor(in tensorRef, offset int64, shape []value) {
	dims := make([]int64, 0, min(len(shape), maxRank))
	for _, d := range shape {
		if d.kind != number || len(dims) == maxRank {
			m.fail(fmt.Errorf("a shape of %d sizes, want at most %d whole numbers", len(shape), maxRank))
			return
		}
		dims = append(dims, d.n)
	}
	n, ok := product(dims)
	if !ok || offset < 0 || in.length < 0 || offset > in.length {
		m.fail(fmt.Errorf("a tensor of shape %v at %d of %d elements, want it within its storage", dims, offset,
			in.length))
		return
	}
	in.offset, in.n = offset, min(n, in.length-offset) // of what is expanded no more than there is
	m.push(value{kind: array, box: &box{array: &in}})
}

// maxDepth bounds how deep containers may lie in each other.
const maxDepth = 100

// collector collects the tensors in what a pickle made.
type collector struct {
	sizes   map[string]int64 // of the storages in bytes
	walked  map[*box]bool
	taken   map[tensorRef]bool // tensors that share all of their bytes with one before count once
	tensors []Tensor
}

// collect walks through v, which has a name.
func (c *collector) collect(v value, name string, depth int) error {
	switch {
	case v.kind == array:
		return c.add(*v.box.array, name)
	case v.box == nil || c.walked[v.box]:
		return nil
	case depth == maxDepth:
		return fmt.Errorf("pickle: more than %d containers in each other, want fewer", maxDepth)
	}
	c.walked[v.box] = true
	if v.kind == table {
		for i := 0; i+1 < len(v.box.items); i += 2 {
			if err := c.collect(v.box.items[i+1], join(name, v.box.items[i]), depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	for i, item := range v.box.items {
		next := name
		if v.kind == list {
			next = join(name, value{kind: number, n: int64(i)})
		}
		if err := c.collect(item, next, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// maxName is how much of a path is kept.
const maxName = 512

// join returns the path of what stands under a key. The tables in which a module keeps its parts have no name of their
// own.
func join(name string, key value) string {
	part := key.text
	switch {
	case key.kind == number:
		part = fmt.Sprint(key.n)
	case part == "_modules" || part == "_parameters" || part == "_buffers" || len(name) > maxName:
		return name
	}
	if name != "" {
		part = name + "." + part
	}
	return part[:min(len(part), maxName)]
}

func (c *collector) add(t tensorRef, name string) error {
	of, known := torchTypes[t.kind]
	switch size, there := c.sizes[t.key]; {
	case t.n == 0 || c.taken[t]:
		return nil
	case !known:
		return fmt.Errorf("tensor %s: type %s, want a storage of torch", quote(name), quote(t.kind))
	case !there:
		return fmt.Errorf("tensor %s: storage %s is not in the archive, want it there, uncompressed", quote(name),
			quote(t.key))
	case t.length > size/of.bytes:
		return fmt.Errorf("tensor %s: storage %s of %d x %d bytes is %d bytes in the archive", quote(name),
			quote(t.key), t.length, of.bytes, size)
	case len(c.tensors) == MaxTensors:
		return errors.New("more tensors than a model has, want fewer")
	}
	c.taken[t] = true
	c.tensors = append(c.tensors, Tensor{Name: name, Bytes: t.n * of.bytes, Float: of.float})
	return nil
}

// modelKeys are the usual names of the model in a checkpoint of a training, the surest first.
var modelKeys = []string{"state_dict", "model_state_dict", "model_state", "model", "module", "net", "network", "params",
	"weights"}

// notModel are starts of the usual names of what else is in it.
var notModel = []string{"optim", "opt_", "lr_sched", "sched", "scaler", "grad_scaler", "ema", "model_ema", "rng",
	"random",
	"callbacks", "loops"}

// models returns the parts of a checkpoint that may be the model, the likeliest first: what stands under one of
// modelKeys, and all but what stands under the names of notModel. The first with tensors is it.
func models(root value) (parts []value) {
	if root.kind != table {
		return []value{root}
	}
	items, rest := root.box.items, &box{}
	for _, key := range modelKeys {
		for i := 0; i+1 < len(items); i += 2 {
			if items[i].text == key && items[i+1].kind != array {
				parts = append(parts, items[i+1])
			}
		}
	}
	for i := 0; i+1 < len(items); i += 2 {
		if items[i+1].kind == array || !isNotModel(items[i].text) {
			rest.items = append(rest.items, items[i], items[i+1])
		}
	}
	return append(parts, value{kind: table, box: rest})
}

func isNotModel(key string) bool {
	key = strings.ToLower(key)
	return slices.ContainsFunc(notModel, func(a string) bool { return strings.HasPrefix(key, a) })
}
