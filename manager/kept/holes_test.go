package kept

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/trainyard/trainyard/api/site"
	"github.com/trainyard/trainyard/driver/local/shim"
)

// Ensure that a reader of an output passes over what is not kept, says how much that is, and gets all else, also where
// a character was cut in two, and from any place on.
func TestHolesAreReported(t *testing.T) {
	dir := t.TempDir()
	path := shim.State(dir).RunDir(3, 1).Output()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	const blocks = 64
	const block = 4096
	text := strings.Repeat("ä", blocks*block/2)
	text = "x" + text[:len(text)-3] + "ende" // characters lie across the ends of blocks
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, hole := range [][2]int64{{2, 10}, {20, 40}} {
		if err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, hole[0]*block,
			(hole[1]-hole[0])*block); err != nil {
			t.Fatal(err)
		}
	}
	const first = "\n[trainyard: 32768 bytes (0.0 MiB) of the output are not kept]\n"
	const second = "\n[trainyard: 81920 bytes (0.1 MiB) of the output are not kept]\n"
	want := text[:2*block] + first + text[10*block:20*block] + second + text[40*block:]
	for from, want := range map[string]string{site.Start: want,
		"40960":  text[10*block:20*block] + second + text[40*block:],
		"36864":  strings.Replace(first, "32768", "4096", 1) + text[10*block:20*block] + second + text[40*block:],
		"163840": text[40*block:]} {
		out, err := Outputs(dir).Open(context.Background(), site.Source{Job: 3, Attempt: 1})
		if err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		for place := from; ; {
			piece, behind, err := out.Next(place, true)
			if err != nil {
				t.Fatal(err)
			}
			if len(piece) == 0 {
				break
			}
			got.Write(piece)
			place = behind
		}
		if got.String() != want {
			t.Errorf("from %s: %d bytes, want %d", from, got.Len(), len(want))
		}
		_ = out.Close()
	}
}
