package checkpoint

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"testing"
)

// packed is a file of an archive made by hand.
type packed struct {
	name   string
	data   string
	method uint16
	claim  int // size written, if not 0
	at     int // place written, if not 0
}

// pack makes an archive.
func pack(files ...packed) []byte {
	var b, dir []byte
	le := binary.LittleEndian
	for _, f := range files {
		at, size := len(b), len(f.data)
		if f.claim > 0 {
			size = f.claim
		}
		if f.at > 0 {
			at = f.at
		}
		b = append(b, "PK\x03\x04\x00\x00\x00\x00"...)
		b = append(le.AppendUint16(b, f.method), make([]byte, 8)...)
		b = le.AppendUint32(le.AppendUint32(b, uint32(size)), uint32(size))
		b = append(le.AppendUint32(b, uint32(len(f.name))), f.name+f.data...)
		dir = append(dir, "PK\x01\x02\x00\x00\x00\x00\x00\x00"...)
		dir = append(le.AppendUint16(dir, f.method), make([]byte, 8)...)
		dir = le.AppendUint32(le.AppendUint32(dir, uint32(size)), uint32(size))
		dir = append(le.AppendUint32(dir, uint32(len(f.name))), make([]byte, 10)...)
		dir = append(le.AppendUint32(dir, uint32(at)), f.name...)
	}
	at := len(b)
	b = append(b, dir...)
	b = append(b, "PK\x05\x06\x00\x00\x00\x00"...)
	b = le.AppendUint16(le.AppendUint16(b, uint16(len(files))), uint16(len(files)))
	b = le.AppendUint32(le.AppendUint32(b, uint32(len(dir))), uint32(at))
	return append(b, 0, 0)
}

// float is the pickle of a tensor of so many floats, at an offset, in a storage "0" of so many.
func float(shape, offset, stored string) string {
	return "ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\n" +
		"X\x01\x00\x00\x000X\x03\x00\x00\x00cpu" + stored + "tQ" + offset + shape + ")\x89}tR"
}

// Ensure that an archive that is crafted is refused with one error, at once, and that what is only odd is read.
func TestHostileArchives(t *testing.T) {
	good := "\x80\x02" + float("K\x03\x85", "K\x00", "K\x03") + "."
	twelve := packed{name: "a/data/0", data: strings.Repeat("x", 12)}
	many := make([]packed, 3)
	for i := range many {
		many[i] = packed{name: fmt.Sprint("a/data/", i), data: "xxxx", at: 1}
	}
	for _, c := range []struct {
		files []packed
		want  string
	}{
		{[]packed{{name: "a/data.pkl", data: good}, twelve}, " 12 float\n"},
		{[]packed{twelve, {name: "a/data.pkl", data: good}, {name: "a/x/data.pkl", data: "junk"}}, " 12 float\n"},
		{[]packed{{name: "a/data.pkl", data: good}},
			`checkpoint: f: tensor "": storage "0" is not in the archive, want it there, uncompressed`},
		{[]packed{{name: "a/data.pkl", data: good}, {name: "a/data/0", data: "x", method: 8}},
			`checkpoint: f: tensor "": storage "0" is not in the archive, want it there, uncompressed`},
		{[]packed{{name: "a/data.pkl", data: good}, {name: "a/data/0", data: "x"}},
			`checkpoint: f: tensor "": storage "0" of 3 x 4 bytes is 1 bytes in the archive`},
		{[]packed{{name: "a/data.pkl", data: good, method: 8}, twelve},
			`checkpoint: f: archive: data.pkl is compressed or encrypted, want it plain, as torch.save writes it`},
		{[]packed{{name: "a/data.pkl", data: good}, {name: "b/data.pkl", data: good}},
			`checkpoint: f: archive: both "a/data.pkl" and "b/data.pkl", want one`},
		{[]packed{twelve}, `checkpoint: f: archive: no data.pkl in it, want what torch.save writes`},
		{[]packed{{name: "a/data.pkl", data: good, claim: 1 << 30}},
			`checkpoint: f: archive: entry 0 of 1: "a/data.pkl" has 1073741824 bytes at 0, want them before the ` +
				`directory, at 138`},
		{[]packed{{name: "a/data.pkl", data: good}, twelve, {name: "a/data/1", at: 5}},
			`checkpoint: f: archive: "a/data/1" at 5 overlaps "a/data.pkl", want them apart`},
		{many, `checkpoint: f: archive: "a/data/1" at 1 overlaps "a/data/0", want them apart`},
		{[]packed{{name: "a/data.pkl", data: good, at: 7}, twelve, {name: "z", data: strings.Repeat("z", 200)}},
			`checkpoint: f: archive: data.pkl of 98 bytes at 41703, want it before the directory, at 419`},
		{[]packed{{name: strings.Repeat("n", 2000), data: ""}},
			`checkpoint: f: archive: entry 0 of 1: starts with "PK\x01\x02" and has a name of 2000 bytes, want an ` +
				`entry, and at most 1024`},
	} {
		got, err := readBytes(pack(c.files...))
		if err != nil && err.Error() != c.want || err == nil && listed(got) != c.want {
			t.Errorf("got  %s, %v\nwant %s", listed(got), err, c.want)
		}
	}
}

// Ensure that a directory that lies about its size, its place or its number is refused, and a file cut anywhere.
func TestHostileDirectory(t *testing.T) {
	good, err := os.ReadFile("testdata/training.pt")
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(good) {
		if got, err := readBytes(good[:n]); err == nil {
			t.Fatalf("cut at %d: %v", n, got)
		}
	}
	last := bytes.LastIndex(good, []byte("PK\x05\x06"))
	for _, c := range []struct {
		at, bytes int
		value     uint64
		want      string
	}{
		{10, 2, 0, `checkpoint: f: archive: no data.pkl in it, want what torch.save writes`},
		{10, 2, 0xfffe, `checkpoint: f: archive: entry 26 of 65534: unexpected EOF`},
		{12, 4, 1 << 31, `checkpoint: f: archive: a directory of 2147483648 bytes at 5650, want it before byte 7329`},
		{16, 4, 1 << 31, `checkpoint: f: archive: a directory of 1603 bytes at 2147483648, want it before byte 7329`},
		{16, 4, 3, `checkpoint: f: archive: entry 0 of 26: starts with "\x04\x00\x00\b" and has a name of 24946 ` +
			`bytes, want an entry, and at most 1024`},
	} {
		b := bytes.Clone(good)
		for i := range c.bytes {
			b[last+c.at+i] = byte(c.value >> (8 * i))
		}
		if _, err := readBytes(b); fmt.Sprint(err) != c.want {
			t.Errorf("%+v: %v", c, err)
		}
	}
	asLarge := bytes.Clone(good) // torch writes the record of a large archive always
	asLarge[last+10], asLarge[last+11] = 0xff, 0xff
	if _, err := readBytes(asLarge); err != nil {
		t.Error(err)
	}
	large := pack(packed{name: "a/data.pkl", data: strings.Repeat("x", 200)})
	large[len(large)-endLength+10], large[len(large)-endLength+11] = 0xff, 0xff
	if _, err := readBytes(large); fmt.Sprint(err) != "checkpoint: f: archive: no record of a large archive, want one" {
		t.Error(err)
	}
}

// Ensure that a pickle that is crafted ends with one error, or with what little it makes.
func TestHostilePickles(t *testing.T) {
	deep := "\x80\x02" + strings.Repeat("]", 200) + float("K\x03\x85", "K\x00", "K\x03") + strings.Repeat("a", 200) +
		"."
	// 5^40 lists, if it were walked so
	wide := "\x80\x02]q\x00" + strings.Repeat("](h\x00h\x00h\x00h\x00h\x00eq\x00", 40) + "."
	for _, c := range []struct{ pickle, want string }{
		{"\x80\x02cos\nsystem\nX\x02\x00\x00\x00ls\x85R.", ""}, // called by pickle.load
		{"\x80\x02" + float("K\x64\x85", "K\x01", "K\x03") + ".", " 8 float\n"},
		{"\x80\x02" + float("K\x03\x85", "J\xff\xff\xff\xff", "K\x03") + ".",
			`checkpoint: f: pickle: byte 99, operation 0x52: a tensor of shape [3] at -1 of 3 elements, want it ` +
				`within its storage`},
		{"\x80\x02" + float("J\xff\xff\xff\xff\x85", "K\x00", "K\x03") + ".",
			`checkpoint: f: pickle: byte 99, operation 0x52: a tensor of shape [-1] at 0 of 3 elements, want it ` +
				`within its storage`},
		{"\x80\x02" + float("\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x40\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x40\x86",
			"K\x00", "K\x03") + ".",
			`checkpoint: f: pickle: byte 114, operation 0x52: a tensor of shape [4611686018427387904 ` +
				`4611686018427387904] at 0 of 3 elements, want it within its storage`},
		{"\x80\x02" + float("K\x03\x85", "K\x00", "K\x64") + ".",
			`checkpoint: f: tensor "": storage "0" of 100 x 4 bytes is 12 bytes in the archive`},
		{deep, `checkpoint: f: pickle: more than 100 containers in each other, want fewer`},
		{wide, ""},
		{"\x80\x02]q\x00h\x00a.", ""}, // a list within itself
		{"\x80\x02ctorch._tensor\n_rebuild_from_type_v2\nq\x00(h\x00h\x00]q\x01h\x00ah\x00ah\x01atR.", ""},
		{"\x80\x02X\xff\xff\xff\xffa.", `checkpoint: f: pickle: byte 2, operation 0x58: unexpected EOF`},
		{"\x80\x02\x8d\xff\xff\xff\xff\xff\xff\xff\xffa.",
			`checkpoint: f: pickle: byte 2, operation 0x8d: unexpected EOF`},
		{"\x80\x02cos", `checkpoint: f: pickle: byte 2, operation 0x63: unexpected EOF`},
		{"\x80\x09.", `checkpoint: f: pickle: byte 0, operation 0x80: protocol 9, want at most 5`},
		{"\x80\x02h\x05.", `checkpoint: f: pickle: byte 2, operation 0x68: value 5 was not remembered, want one ` +
			`that was`},
		{"\x80\x02R.", `checkpoint: f: pickle: byte 2, operation 0x52: less on the stack than it takes`},
		{"\x80\x02K\x01(\x85.", `checkpoint: f: pickle: byte 5, operation 0x85: less on the stack than it takes`},
		{"\x80\x02t.", `checkpoint: f: pickle: byte 2, operation 0x74: no mark, want one`},
		{"\x80\x02i.", `checkpoint: f: pickle: byte 2, operation 0x69: not known, want what torch.save writes`},
		{"\x80\x02.", `checkpoint: f: pickle: byte 2: nothing made, want an object`},
		{"\x80\x02N", `checkpoint: f: pickle: byte 2, operation 0x00: unexpected EOF`},
		{"", `checkpoint: f: pickle: byte -1, operation 0x00: unexpected EOF`},
		{strings.Repeat("]0", maxBoxes+1) + ".",
			`checkpoint: f: pickle: byte 2097152, operation 0x5d: more than 1048576 containers, want fewer`},
		{strings.Repeat("N0", maxOps/2) + ".",
			`checkpoint: f: pickle: byte 4194304: no end after 4194304 operations, want one`},
		{strings.Repeat("N", maxStack+1) + ".",
			`checkpoint: f: pickle: byte 65536, operation 0x4e: more than 65536 values on the stack, want fewer`},
		{strings.Repeat("(", maxStack+1) + ".",
			`checkpoint: f: pickle: byte 65536, operation 0x28: more than 65536 marks, want fewer`},
	} {
		b := pack(packed{name: "a/data.pkl", data: c.pickle}, packed{name: "a/data/0", data: strings.Repeat("x", 12)})
		got, err := readBytes(b)
		if err != nil && err.Error() != c.want || err == nil && listed(got) != c.want {
			t.Errorf("%.60q\ngot  %s, %v\nwant %s", c.pickle, listed(got), err, c.want)
		}
	}
}

// The pickle of a model of 1,000 tensors, and a header of as many.
func BenchmarkRead(b *testing.B) {
	header, pickle := "{", "\x80\x02}("
	for i := range 1000 {
		header += fmt.Sprintf(`"layer.%04d":{"dtype":"F32","shape":[1,1],"data_offsets":[%d,%d]},`, i, 4*i, 4*i+4)
		pickle += fmt.Sprintf("X\x0a\x00\x00\x00layer.%04d", i) + float("K\x01\x85",
			"M"+string([]byte{byte(i), byte(i >> 8)}), "M\xe8\x03")
	}
	for _, c := range []struct {
		name string
		file []byte
	}{
		{"safetensors", safe(header[:len(header)-1]+"}", 4000)},
		{"torch", pack(packed{name: "a/data.pkl", data: pickle + "u."},
			packed{name: "a/data/0", data: strings.Repeat("x", 4000)})},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if got, err := readBytes(c.file); err != nil || len(got) != 1000 {
					b.Fatal(len(got), err)
				}
			}
		})
	}
}
