package checkpoint

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// readBytes reads a checkpoint from memory.
func readBytes(b []byte) ([]Tensor, error) { return Read(bytes.NewReader(b), int64(len(b)), "f") }

// listed writes tensors as the golden files do.
func listed(tensors []Tensor) string {
	var b strings.Builder
	for _, t := range tensors {
		of := "other"
		if t.Float {
			of = "float"
		}
		fmt.Fprintln(&b, t.Name, t.Bytes, of)
	}
	return b.String()
}

// Ensure that what PyTorch saved, and what it says of that, are the same: a state, a training with its optimiser, tied
// weights, a whole module, views of a storage, another protocol. testdata/make.py writes both.
func TestTorch(t *testing.T) {
	goldens, err := filepath.Glob("testdata/*.pt.want")
	if err != nil || len(goldens) != 6 {
		t.Fatal(goldens, err)
	}
	for _, golden := range goldens {
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(strings.TrimSuffix(golden, ".want"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := readBytes(b)
		if err != nil || listed(got) != string(want) {
			t.Errorf("%s: %v\n%swant\n%s", golden, err, listed(got), want)
		}
	}
}

// safe is a file of safetensors: header, then so many bytes of data.
func safe(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, data)...)
}

// Ensure that a file of safetensors is read, by where tensors lie, and what is wrong with one is said where.
func TestSafetensors(t *testing.T) {
	const a = `"a":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}`
	for _, c := range []struct {
		header string
		data   int
		want   string
	}{
		{`{` + a + `}`, 12, "a 12 float\n"},
		{`{"__metadata__":{"format":"pt"},"w":{"dtype":"BF16","shape":[2,3],"data_offsets":[12,24]},` + a + `}   `, 24,
			"a 12 float\nw 12 float\n"},
		{`{"e":{"shape":[0,7],"data_offsets":[0,0],"dtype":"I64"},"s":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}`,
			1, "e 0 other\ns 1 other\n"},
		{`{"q":{"dtype":"F4","shape":[6],"data_offsets":[0,3]}}`, 3, "q 3 float\n"},
		{`{}`, 0, ""},

		{`{` + a + `}`, 13, `checkpoint: f: tensors of 12 bytes, want the 13 that follow the header`},
		{`{` + a + `}`, 11, `checkpoint: f: tensors of 12 bytes, want the 11 that follow the header`},
		{`{` + a + `,` + a + `}`, 12, `checkpoint: f: header: byte 66: tensor "a" given again, want it once`},
		{`{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,16]}}`, 16,
			`checkpoint: f: header: byte 62: tensor "a": data 0..16 of F32 [3], want 12 bytes`},
		{`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}}`,
			6, `checkpoint: f: tensor "b": data from 2 on, want from 4, where the one before ends`},
		{`{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, 8,
			`checkpoint: f: tensor "a": data from 4 on, want from 0, where the one before ends`},
		{`{"a":{"dtype":"F32","shape":[1],"data_offsets":[8,4]}}`, 8,
			`checkpoint: f: header: byte 61: tensor "a": data 8..4 of F32 [1], want 4 bytes`},
		{`{"a":{"dtype":"F99","shape":[1],"data_offsets":[0,4]}}`, 4,
			`checkpoint: f: header: byte 61: tensor "a": type "F99", want one of safetensors`},
		{`{"a":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}}`, 2,
			`checkpoint: f: header: byte 60: tensor "a": data 0..2 of F4 [3], want 1.5 bytes`},
		{`{"a":{"dtype":"F32","shape":[1125899906842624,1024],"data_offsets":[0,4]}}`, 4,
			`checkpoint: f: header: byte 81: tensor "a": shape of more than 1125899906842624 elements, want fewer`},
		{`{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}`, 4,
			`checkpoint: f: header: byte 39: tensor "a": shape with "-1", want at most 64 whole numbers >= 0`},
		{`{"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}}`, 4,
			`checkpoint: f: header: byte 40: tensor "a": shape with "1.5", want at most 64 whole numbers >= 0`},
		{`{"a":{"dtype":"F32","shape":[` + strings.Repeat("1,", 64) + `1],"data_offsets":[0,4]}}`, 4,
			`checkpoint: f: header: byte 166: tensor "a": shape with "1", want at most 64 whole numbers >= 0`},
		{`{"a":{"dtype":"F32","shape":[1]}}`, 4,
			`checkpoint: f: header: byte 40: tensor "a": 2 of its keys, 0 offsets, want dtype, shape and two ` +
				`data_offsets`},
		{`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}}`, 4,
			`checkpoint: f: header: byte 59: tensor "a": 3 of its keys, 1 offsets, want dtype, shape and two ` +
				`data_offsets`},
		{`{"a":{"dtype":"F32","dtype":"F32"}}`, 4,
			`checkpoint: f: header: byte 35: tensor "a": dtype given again, want it once`},
		{`{"a":{"dtype":"F32","colour":1}}`, 4,
			`checkpoint: f: header: byte 36: tensor "a": key "colour", want dtype, shape and data_offsets`},
		{`{"a":7}`, 4, `checkpoint: f: header: byte 14: tensor "a": an entry is "7", want {`},
		{`{"__metadata__":{"a":{}}}`, 4, `checkpoint: f: header: byte 30: a value of __metadata__ is "{", want a text`},
		{`{"a":` + strings.Repeat("[", 100000), 0,
			`checkpoint: f: header: byte 14: tensor "a": an entry is "[", want {`},
		{`{` + a, 12, `checkpoint: f: header: byte 62: unexpected EOF`},
		{`{` + a + `} {}`, 12, `checkpoint: f: header: byte 65: something after the header's object, want nothing ` +
			`but blanks`},
		{`{"a":{"dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,4]}}`, 4,
			`checkpoint: f: header: byte 56: tensor "a": shape with "9223372036854775808", want at most 64 whole ` +
				`numbers >= 0`},
	} {
		got, err := readBytes(safe(c.header, c.data))
		if err != nil && err.Error() != c.want || err == nil && listed(got) != c.want {
			t.Errorf("%.80s\ngot  %s, %v\nwant %s", c.header, listed(got), err, c.want)
		}
	}
}

// Ensure that a file that lies about its length, or is of another kind, is refused by its first bytes.
func TestFirstBytes(t *testing.T) {
	long := safe(`{}`, 0)
	binary.LittleEndian.PutUint64(long, maxHeader+1)
	short := safe(`{}`, 0)
	short[0] = 3
	huge := safe(`{}`, 0)
	binary.LittleEndian.PutUint64(huge, math.MaxUint64)
	legacy, err := os.ReadFile("testdata/legacy.pt")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		b    []byte
		want string
	}{
		{nil, `checkpoint: f: 0 bytes, want safetensors, or what torch.save of PyTorch 1.6 or later writes`},
		{[]byte("GGUF\x03\x00\x00\x00\x00\x00"),
			`checkpoint: f: starts with "GGUF", want safetensors, or what torch.save of PyTorch 1.6 or later writes`},
		{legacy, `checkpoint: f: a pickle without an archive, as old versions of torch.save wrote it, want ` +
			`safetensors, or what torch.save of PyTorch 1.6 or later writes`},
		{long, `checkpoint: f: a header of 100000001 bytes, want at most 100000000, and at most the 2 that follow`},
		{short, `checkpoint: f: a header of 3 bytes, want at most 100000000, and at most the 2 that follow`},
		{huge, `checkpoint: f: a header of 18446744073709551615 bytes, want at most 100000000, and at most the 2 ` +
			`that follow`},
		{[]byte("PK\x03\x04" + strings.Repeat("x", 100)),
			`checkpoint: f: archive: no directory at its end, want one: the file is cut short`},
	} {
		if got, err := readBytes(c.b); fmt.Sprint(err) != c.want {
			t.Errorf("%.20q: %v, %v\nwant %s", c.b, got, err, c.want)
		}
	}
	if _, err := Read(io.NewSectionReader(bytes.NewReader(long), 0, 5), 100, "f"); fmt.Sprint(err) !=
		"checkpoint: f: byte 5: unexpected EOF" {
		t.Error(err)
	}
}

// Ensure that a profile is of what may be trained, in MB.
func TestProfile(t *testing.T) {
	p, err := Profile([]Tensor{{"a", 3 << 20, true}, {"mask", 100 << 20, false}, {"b", 1 << 19, true},
		{"none", 0, true}})
	if err != nil || fmt.Sprint(p.Tensors) != "[3 0.5]" || math.Abs(p.Skew()-3/3.5) > 1e-12 {
		t.Errorf("%v, skew %v, %v", p, p.Skew(), err)
	}
	if _, err = Profile([]Tensor{{"a", 4, false}}); fmt.Sprint(err) !=
		"checkpoint: 1 tensors, none of them of a floating-point type, want at least one" {
		t.Error(err)
	}
}

// FuzzRead reads any bytes: an error that says where, or tensors within the file.
func FuzzRead(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.pt")
	for _, path := range files {
		if b, err := os.ReadFile(path); err == nil {
			f.Add(b)
		}
	}
	f.Add(safe(`{"__metadata__":{"a":"b"},"a":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}}`, 12))
	f.Fuzz(func(t *testing.T, b []byte) {
		tensors, err := readBytes(b)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "checkpoint: f: ") || strings.Contains(err.Error(), "\n") {
				t.Fatal(err)
			}
			return
		}
		for _, x := range tensors {
			if x.Bytes < 0 || x.Bytes > int64(len(b)) || len(x.Name) > len(b) {
				t.Fatalf("%+v in %d bytes", x, len(b))
			}
		}
	})
}

// FuzzUnpickle interprets any bytes as a pickle.
func FuzzUnpickle(f *testing.F) {
	f.Add([]byte("\x80\x02}q\x00X\x01\x00\x00\x00aq\x01K\x05s."))
	f.Add([]byte("\x80\x02]q\x00h\x00a."))
	f.Add([]byte("\x80\x04\x95\x01\x00\x00\x00\x00\x00\x00\x00\x8c\x01a\x8c\x01b\x93)R}b."))
	f.Fuzz(func(_ *testing.T, b []byte) {
		root, err := unpickle(b)
		if err != nil {
			return
		}
		for _, part := range models(root) {
			c := collector{walked: make(map[*box]bool), taken: make(map[tensorRef]bool)}
			_ = c.collect(part, "", 0)
		}
	})
}

// Ensure that a checkpoint is known by its first bytes, damaged ones too, and a log of tensors or messages is never
// one.
func TestIs(t *testing.T) {
	for _, c := range []struct {
		head string
		want bool
	}{
		{string(safe("{}", 0)[:9]), true},
		{"PK\x03\x04\x14\x00\x08\x08\x00", true},
		{"\x80\x02\x8a\nl\xfc\x9cF\xf9", true}, // of an old torch.save, which Read refuses with its reason
		{"", false},
		{"tensor a{", false}, // a brace where safetensors has one
		{"0.25 4096", false},
		{"PK\x05\x06\x00\x00\x00\x00\x00", false},
		{"\x08\x00\x00\x00\x00\x00\x00\x00[", false},
	} {
		if got := Is([]byte(c.head), 1<<40); got != c.want {
			t.Errorf("%q: %v, want %v", c.head, got, c.want)
		}
	}
}
