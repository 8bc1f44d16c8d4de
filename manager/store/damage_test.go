package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/trainyard/trainyard/internal/testsize"
)

// image is the files of a log as a crash leaves them: some batches in the database, the others in its write-ahead log.
type image map[string][]byte

func takeImage(t *testing.T, dir string) image {
	t.Helper()
	files := image{}
	for _, name := range []string{FileName, FileName + "-wal"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = b
	}
	return files
}

// put writes the image to a new folder, with one file cut to size bytes; size < 0 removes it.
func (x image) put(t *testing.T, cut string, size int) string {
	t.Helper()
	return x.putIn(t, t.TempDir(), cut, size)
}

// putIn is put in a folder that may hold an earlier one.
func (x image) putIn(t *testing.T, dir, cut string, size int) string {
	t.Helper()
	for name, b := range x {
		if name == cut && size < 0 {
			continue
		}
		if name == cut {
			b = b[:size]
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "epoch"), []byte("1"), 0o600); err != nil { // a manager has been at work
		t.Fatal(err)
	}
	return dir
}

// crashed returns an image with the given batches in the database and in the write-ahead log.
func crashed(t *testing.T, inDatabase, inLog uint64) image {
	t.Helper()
	dir := t.TempDir()
	s := begin(t, dir)
	seq := uint64(0)
	if inDatabase > 0 {
		if err := write(s.Writer(0), &seq, 1, inDatabase); err != nil {
			t.Fatal(err)
		}
		closed(t, s) // moves all of it there
		s = open(t, dir)
	}
	if err := write(s.Writer(inDatabase), &seq, inDatabase+1, inDatabase+inLog); err != nil {
		t.Fatal(err)
	}
	return takeImage(t, dir)
}

// read does what a manager does with a folder before it decides anything, and returns the batches it finds. An error is
// fine; half a batch, or a log taken for new, is not.
func read(t *testing.T, dir string) (last uint64, err error) {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	begun, err := s.Begun()
	if err != nil {
		return 0, err
	}
	if !begun {
		if err = s.Begin(header); err == nil {
			t.Error("the log is taken for new")
		}
		return 0, err
	}
	log, err := text(s)
	if err != nil {
		return 0, err
	}
	if last, err = wholeBatches(log); errors.Is(err, errHalf) {
		t.Error(err)
	}
	return last, err
}

// sizes are all sizes near the ends of pages and frames, and some between.
func sizes(length int) []int {
	list := []int{-1, 0, 1, 15, 16, 17, 31, 32, 33, 99, 100, 101, 511, 512}
	for at := 4096; at < length+4096; at += 4096 {
		list = append(list, at-1, at, at+1, at+1000)
	}
	for at := 32; at < length; at += 4096 + 24 { // frames of the write-ahead log
		list = append(list, at, at+23, at+24, at+25, at+2000)
	}
	return append(list, length-1)
}

// Ensure that a log which is cut anywhere is an error or a prefix of whole batches, and never new.
func TestCut(t *testing.T) {
	for _, c := range []struct{ inDatabase, inLog uint64 }{{0, 12}, {60, 12}} {
		whole := crashed(t, c.inDatabase, c.inLog)
		if last, err := read(t, whole.put(t, "", 0)); err != nil || last != c.inDatabase+c.inLog {
			t.Fatalf("not cut: %d batches, %v", last, err)
		}
		for name, b := range whole {
			errs, shorter := 0, 0
			for _, size := range sizes(len(b)) {
				if size >= len(b) {
					continue
				}
				last, err := read(t, whole.put(t, name, size))
				switch {
				case err != nil:
					errs++
				case last < c.inDatabase+c.inLog:
					shorter++
				}
				if t.Failed() {
					t.Fatalf("%s of %d bytes cut to %d: %d batches, %v", name, len(b), size, last, err)
				}
			}
			if errs+shorter == 0 {
				t.Errorf("%s with %+v: cut anywhere, and nothing is missing", name, c)
			}
		}
	}
}

// Ensure that a flipped bit in the write-ahead log never gives half a batch.
func TestFlipped(t *testing.T) {
	whole := crashed(t, 0, 12)
	wal := whole[FileName+"-wal"]
	for at := 0; at < len(wal); at += 1 + len(wal)/150 {
		wal[at] ^= 4
		last, err := read(t, whole.put(t, "", 0))
		wal[at] ^= 4
		if t.Failed() {
			t.Fatalf("bit flipped at %d of %d: %d batches, %v", at, len(wal), last, err)
		}
	}
}

// Ensure that a folder, or a database, that may not be written to is an error, and that what is there stays. Root may
// write anywhere, so for it the folder is one where no one can.
func TestReadOnly(t *testing.T) {
	dir := t.TempDir()
	closed(t, begin(t, dir))
	if os.Geteuid() != 0 {
		for _, path := range []string{filepath.Join(dir, FileName), dir} {
			t.Cleanup(func() { _ = os.Chmod(path, 0o700) })
			if err := os.Chmod(path, 0o500); err != nil {
				t.Fatal(err)
			}
		}
	} else {
		dir = fmt.Sprintf("/proc/%d/state", os.Getpid())
	}
	s, err := Open(dir)
	if err == nil {
		err = errors.Join(s.Begin(header), s.Close())
	}
	if err == nil {
		t.Error("no error")
	}
}

// walStride is the distance of the cuts beyond the first page; 1 = every byte.
var walStride = testsize.Flag("wal-stride", 997, 97,
	"distance of the cuts of the write-ahead log beyond one page, in bytes")

// Promise 1, power cut: a write-ahead log that ends anywhere has all batches whose sync had returned before that byte
// was written, and never half of one, nor is it taken for new. Every byte of one page in the middle, and by stride
// elsewhere.
func TestPromise01CutWriteAheadLog(t *testing.T) {
	dir := t.TempDir()
	s, seq := begin(t, dir), uint64(0)
	if err := write(s.Writer(0), &seq, 1, 20); err != nil {
		t.Fatal(err)
	}
	closed(t, s)
	s = open(t, dir)
	wal := filepath.Join(dir, FileName+"-wal")
	synced := []int{0} // length of the file when so many batches more were acknowledged
	for n := uint64(21); n <= 60; n++ {
		if err := write(s.Writer(n-1), &seq, n, n); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(wal)
		if err != nil {
			t.Fatal(err)
		}
		synced = append(synced, int(info.Size()))
	}
	whole := takeImage(t, dir)
	length, middle := len(whole[FileName+"-wal"]), synced[20]
	place, cuts, refused, stride := t.TempDir(), 0, 0, walStride.N()
	for size := 0; size <= length; size++ {
		inPage := size >= middle && size < middle+4096+24
		if !inPage && size%stride != 0 && size != length {
			continue
		}
		cuts++
		want := uint64(20)
		for n, end := range synced {
			if end <= size {
				want = 20 + uint64(n)
			}
		}
		last, err := read(t, whole.putIn(t, place, FileName+"-wal", size))
		if err != nil {
			refused++
		} else if last < want {
			t.Errorf("cut to %d of %d bytes: %d batches, %d were acknowledged by then", size, length, last, want)
		}
		if t.Failed() {
			t.FailNow()
		}
	}
	t.Logf("%d cuts of %d bytes, %d refused", cuts, length, refused)
}
