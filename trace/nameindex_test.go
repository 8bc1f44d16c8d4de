package trace

import (
	"math/rand/v2"
	"strconv"
	"testing"
)

// Ensure that the index finds the same twins as a map, for names that rise at first and for names at random.
func TestNameIndexAgainstMap(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		index, twin := newNameIndex(), make(map[string]int)
		var jobs []Job
		rising, space := r.IntN(300), 1+r.IntN(5000)
		for i := range 500 {
			name := strconv.Itoa(r.IntN(space))
			if i < rising {
				name = strconv.Itoa(i)
			}
			jobs = append(jobs, job(name, 0, 1, 1))
			want, known := twin[name]
			if !known {
				want, twin[name] = -1, i
			}
			if got := index.add(jobs); got != want {
				t.Fatalf("job %d %q: twin %d, want %d", i, name, got, want)
			}
			if known {
				break // the first twin ends a parse
			}
		}
	}
}

func TestWordsKeepsCopies(t *testing.T) {
	var w words
	text := []byte("abc")
	var kept []string
	for i := range 50_000 {
		kept = append(kept, w.keep(strconv.Itoa(i)))
	}
	first := w.intern(user, string(text))
	for i, s := range kept {
		if s != strconv.Itoa(i) {
			t.Fatalf("word %d became %q", i, s)
		}
	}
	if w.intern(model, "abc") != first || w.intern(user, "x") != "x" || w.intern(user, "abc") != "abc" {
		t.Error("intern changed a word")
	}
}
