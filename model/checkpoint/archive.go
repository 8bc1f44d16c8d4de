package checkpoint

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Limits on the directory of an archive.
const (
	maxEntries   = 1 << 18
	maxDirectory = 64 << 20 // bytes
	maxPath      = 1 << 10  // bytes of a name
)

// archive is the directory of a zip file, as torch.save writes it: nothing is compressed. We read it ourselves because
// package archive/zip has no limits.
//
// Source: PKWARE APPNOTE 6.3, sections 4.3.7, 4.3.12 to 4.3.16.
type archive struct {
	r       io.ReaderAt
	end     int64 // where the directory starts
	entries []entry
}

// entry is one file in an archive.
type entry struct {
	name   string
	stored bool  // neither compressed nor encrypted
	at     int64 // of its local header
	size   int64 // as it lies there
}

// u16, u32 and u64 read numbers as zip writes them.
func u16(b []byte) int64 { return int64(binary.LittleEndian.Uint16(b)) }
func u32(b []byte) int64 { return int64(binary.LittleEndian.Uint32(b)) }

// u64 is at most what an int64 holds: more is out of any bound.
func u64(b []byte) int64 { return int64(min(binary.LittleEndian.Uint64(b), 1<<63-1)) }

// openArchive reads the directory of a file of size bytes.
func openArchive(r io.ReaderAt, size int64) (*archive, error) {
	a := &archive{r: r}
	count, length, err := a.locate(size)
	if err != nil {
		return nil, err
	}
	if count > maxEntries || length > maxDirectory {
		return nil, fmt.Errorf("archive: a directory of %d files in %d bytes, want at most %d in %d", count, length,
			maxEntries, maxDirectory)
	}
	in := bufio.NewReader(io.NewSectionReader(r, a.end, length))
	for i := range count {
		if err := a.entry(in); err != nil {
			return nil, fmt.Errorf("archive: entry %d of %d: %w", i, count, err)
		}
	}
	return a, a.apart()
}

// Lengths of records without what varies.
const (
	endLength     = 22
	locatorLength = 20
	end64Length   = 56
	entryLength   = 46
	localLength   = 30
)

// locate finds the directory by the record at the end of the file. It sets a.end, and returns the number of entries and
// the bytes that they take.
func (a *archive) locate(size int64) (count, length int64, err error) {
	tail := make([]byte, min(size, endLength+0xffff))
	from := size - int64(len(tail))
	if unread := readAt(a.r, tail, from); unread != nil {
		return 0, 0, unread
	}
	i := len(tail) - endLength
	for ; i >= 0; i-- {
		if bytes.HasPrefix(tail[i:], []byte("PK\x05\x06")) && i+endLength+int(u16(tail[i+20:])) == len(tail) {
			break
		}
	}
	if i < 0 {
		return 0, 0, errors.New("archive: no directory at its end, want one: the file is cut short")
	}
	b := tail[i:]
	limit := from + int64(i)
	count, length, a.end = u16(b[10:]), u32(b[12:]), u32(b[16:])
	if count == 0xffff || length == 0xffffffff || a.end == 0xffffffff {
		if count, length, limit, err = a.locate64(limit); err != nil {
			return 0, 0, err
		}
	}
	if length > limit || a.end > limit-length {
		return 0, 0, fmt.Errorf("archive: a directory of %d bytes at %d, want it before byte %d", length, a.end, limit)
	}
	return count, length, nil
}

// locate64 reads the records of large archives, which stand before the one at limit.
func (a *archive) locate64(limit int64) (count, length, at int64, err error) {
	var b [end64Length]byte
	if limit < locatorLength+end64Length {
		return 0, 0, 0, errors.New("archive: no record of a large archive, want one")
	}
	if err := readAt(a.r, b[:locatorLength], limit-locatorLength); err != nil {
		return 0, 0, 0, err
	}
	at = u64(b[8:])
	if string(b[:4]) != "PK\x06\x07" || at > limit-locatorLength-end64Length {
		return 0, 0, 0, errors.New("archive: no record of a large archive, want one")
	}
	if err := readAt(a.r, b[:], at); err != nil {
		return 0, 0, 0, err
	}
	if string(b[:4]) != "PK\x06\x06" {
		return 0, 0, 0, errors.New("archive: no record of a large archive, want one")
	}
	a.end = u64(b[48:])
	return u64(b[32:]), u64(b[40:]), at, nil
}

// entry reads the next entry of the directory.
func (a *archive) entry(in *bufio.Reader) error {
	var b [entryLength]byte
	if _, err := io.ReadFull(in, b[:]); err != nil {
		return whole(err)
	}
	if string(b[:4]) != "PK\x01\x02" || u16(b[28:]) > maxPath {
		return fmt.Errorf("starts with %q and has a name of %d bytes, want an entry, and at most %d", b[:4],
			u16(b[28:]), maxPath)
	}
	rest := make([]byte, u16(b[28:])+u16(b[30:])+u16(b[32:]))
	if _, err := io.ReadFull(in, rest); err != nil {
		return whole(err)
	}
	e := entry{name: string(rest[:u16(b[28:])]), stored: u16(b[10:]) == 0 && u16(b[8:])&1 == 0, size: u32(b[20:]),
		at: u32(b[42:])}
	e.large(rest[u16(b[28:]):][:u16(b[30:])], u32(b[24:]) == 0xffffffff)
	if e.at > a.end-localLength || e.size > a.end-localLength-e.at {
		return fmt.Errorf("%s has %d bytes at %d, want them before the directory, at %d", quote(e.name), e.size, e.at,
			a.end)
	}
	a.entries = append(a.entries, e)
	return nil
}

// large takes sizes above 4 GiB from the extra field, in which those stand that have no room elsewhere: size unpacked,
// size, place.
func (e *entry) large(extra []byte, unpacked bool) {
	for len(extra) >= 4 {
		n := int(u16(extra[2:]))
		if n > len(extra)-4 {
			return
		}
		field := extra[4 : 4+n]
		if u16(extra) == 1 {
			if unpacked && len(field) >= 8 {
				field = field[8:]
			}
			for _, x := range []*int64{&e.size, &e.at} {
				if *x == 0xffffffff && len(field) >= 8 {
					*x, field = u64(field), field[8:]
				}
			}
		}
		extra = extra[4+n:]
	}
}

// apart checks that no two entries overlap.
func (a *archive) apart() error {
	order := make([]*entry, len(a.entries))
	for i := range order {
		order[i] = &a.entries[i]
	}
	slices.SortStableFunc(order, func(x, y *entry) int { return cmp.Compare(x.at, y.at) })
	for i := 1; i < len(order); i++ {
		if before, e := order[i-1], order[i]; e.at < before.at+localLength+before.size {
			return fmt.Errorf("archive: %s at %d overlaps %s, want them apart", quote(e.name), e.at, quote(before.name))
		}
	}
	return nil
}

// maxPickle is how many bytes the pickle of an archive may have: a model of 100,000 tensors takes about 10 MB.
const maxPickle = 32 << 20

// pickle returns the bytes of the one file DIR/data.pkl, and DIR/.
func (a *archive) pickle() (data []byte, dir string, err error) {
	var found *entry
	for i := range a.entries {
		e := &a.entries[i]
		if d, ok := strings.CutSuffix(e.name, "/data.pkl"); ok && !strings.Contains(d, "/") {
			if found != nil {
				return nil, "", fmt.Errorf("archive: both %s and %s, want one", quote(found.name), quote(e.name))
			}
			found, dir = e, d+"/"
		}
	}
	switch {
	case found == nil:
		return nil, "", errors.New("archive: no data.pkl in it, want what torch.save writes")
	case !found.stored:
		return nil, "", errors.New("archive: data.pkl is compressed or encrypted, want it plain, as torch.save " +
			"writes it")
	case found.size > maxPickle:
		return nil, "", fmt.Errorf("archive: data.pkl of %d bytes, want at most %d", found.size, maxPickle)
	}
	var b [localLength]byte
	if err := readAt(a.r, b[:], found.at); err != nil {
		return nil, "", err
	}
	at := found.at + localLength + u16(b[26:]) + u16(b[28:])
	if string(b[:4]) != "PK\x03\x04" || at > a.end-found.size {
		return nil, "", fmt.Errorf("archive: data.pkl of %d bytes at %d, want it before the directory, at %d",
			found.size, at, a.end)
	}
	data = make([]byte, found.size)
	return data, dir, readAt(a.r, data, at)
}

// storages returns the sizes in bytes of the files DIR/data/KEY, by key.
func (a *archive) storages(dir string) map[string]int64 {
	sizes := make(map[string]int64)
	for i := range a.entries {
		if key, ok := strings.CutPrefix(a.entries[i].name, dir+"data/"); ok && a.entries[i].stored {
			sizes[key] = a.entries[i].size
		}
	}
	return sizes
}
