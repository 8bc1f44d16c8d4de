package trace

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Ensure that Convert, which reads row by row where it can, writes what Read and Write together do, and fails with the
// same error, for every sample, in each order of rows and of names.
func TestConvertIsReadAndWrite(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, c := range samples {
		checkConvert(t, c.name, c.text, c.options, c.tables)
	}
	for range 100 {
		text := "job_id,submit_s,num_gpus,duration_s,user\n"
		ids, now := r.Perm(200), 0
		kind := r.IntN(4)
		for i := range 100 {
			id := ids[i]
			if kind == 0 {
				id = i
			}
			if kind == 3 && i > 90 {
				id = r.IntN(300)
			}
			if now += r.IntN(3); kind == 2 {
				now = r.IntN(100)
			}
			text += strconv.Itoa(id) + "," + strconv.Itoa(now) + ",1,5," + []string{"", "ann"}[r.IntN(2)] + "\n"
		}
		checkConvert(t, "random", text, Options{}, tables{})
	}
	for _, text := range []string{"", minimal, minimal + "a,0,1\n", "a,b\n", packed(minimal+"a,0,1,1\n", .8),
		minimal + "a,0,1,1\na,0,1,1\n"} {
		checkConvert(t, text, text, Options{}, tables{})
	}
}

func checkConvert(t *testing.T, name, text string, o Options, more tables) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "f.csv")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	options := func() Options { return more.with(o) }
	for _, format := range Written() {
		var want, got bytes.Buffer
		whole, err := Read(path, options())
		if err == nil {
			err = whole.Write(&want, format, true)
		}
		rows, errConvert := Convert(path, options(), &got, format, true)
		if err != nil || errConvert != nil {
			if err == nil || errConvert == nil || err.Error() != errConvert.Error() || got.Len() > 0 {
				t.Errorf("%s: error %v, want %v", name, errConvert, err)
			}
			continue
		}
		if got.String() != want.String() {
			t.Errorf("%s: Convert wrote\n%.600s, want\n%.600s", name, got.String(), want.String())
		}
		if len(rows.Warnings) != len(whole.Warnings) || !rows.Origin.Equal(whole.Origin) {
			t.Errorf("%s: warnings %q, origin %v, want %q, %v", name, rows.Warnings, rows.Origin, whole.Warnings,
				whole.Origin)
		}
	}
}

// Ensure that notes written above a header are read back, and that they are no jobs.
func TestNotesAreReadBack(t *testing.T) {
	from, err := Parse(strings.NewReader(phillyText), "log\n.json", Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range Written() {
		var text bytes.Buffer
		if err := from.Write(&text, format, true); err != nil {
			t.Fatal(err)
		}
		got, err := Parse(bytes.NewReader(text.Bytes()), "again", Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got.Source != from.Source || !got.Origin.Equal(from.Origin) || len(got.Jobs) != 2 || got.Format != format {
			t.Errorf("%s: source %q, origin %v, %d jobs in\n%s", format, got.Source, got.Origin, len(got.Jobs),
				text.String())
		}
	}
}

func TestWriteRefusesUnknownFormats(t *testing.T) {
	err := new(Trace).Write(new(bytes.Buffer), "swff", false)
	if want := `trace: write: format "swff" (did you mean "swf"?), want one of trainyard, swf`; err == nil ||
		err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// Ensure that clocks are read to the second, across daylight saving where offsets are reported, and that nonsense is
// not.
func TestParseClock(t *testing.T) {
	var p fileClock
	for _, c := range []struct {
		text string
		want string // in RFC 3339, "" = refused, "unknown"
	}{
		{"2017-10-09 07:01:55", "2017-10-09T07:01:55Z"},
		{"2020-02-29T23:59:60", "2020-03-01T00:00:00Z"},
		{"2017-10-09 07:01:55.25", "2017-10-09T07:01:55.25Z"},
		{"2023-03-01 00:18:22+08:00", "2023-03-01T00:18:22Z"},
		{"2023-03-01 00:18:22+0000", "2023-03-01T08:18:22Z"},
		{"2023-03-01 00:18:22Z", "2023-03-01T08:18:22Z"},
		{"2023-03-01 00:18:22-05", "2023-03-01T13:18:22Z"},
		{"Unknown", "unknown"},
		{"None", "unknown"},
		{"", "unknown"},
		{"2017-02-29 07:01:55", ""},
		{"2017-13-01 07:01:55", ""},
		{"2017-10-09 24:01:55", ""},
		{"2017-10-09 07:60:55", ""},
		{"2017-10-09 07:01:55.", ""},
		{"2017-10-09 07:01:55+99:00", ""},
		{"2017-10-09 07:01:55 PDT", ""},
		{"1969-10-09 07:01:55", ""},
		{"9999-10-09 07:01:55", ""},
		{"2017-10-09", ""},
		{"1507532515", ""},
		{"2017-1a-09 07:01:55", ""},
	} {
		got, ok := p.parse(c.text)
		word := ""
		switch {
		case ok && got < 0:
			word = "unknown"
		case ok:
			word = time.Unix(0, int64(got)).UTC().Format(time.RFC3339Nano)
		}
		if word != c.want {
			t.Errorf("%q is read as %q, want %q", c.text, word, c.want)
		}
	}
}

func TestParseLimit(t *testing.T) {
	for text, want := range map[string]time.Duration{"UNLIMITED": 0, "00:01:00": time.Minute,
		"1-02:00:03": 26*time.Hour + 3*time.Second,
		"":           -1, "1:00": -1, "x-00:00:00": -1, "99999-00:00:00": -1, "00:61:00": -1} {
		if got, ok := parseLimit(text); ok != (want >= 0) || ok && got != want {
			t.Errorf("%q is %v, %v, want %v", text, got, ok, want)
		}
	}
}

func TestGPUsOf(t *testing.T) {
	for _, c := range []struct {
		tres, typ string
		n         int
		ok        bool
	}{
		{"", "", 0, true},
		{"billing=8,cpu=8,mem=32G,node=1", "", 0, true},
		{"cpu=8,gres/gpu=4", "", 4, true},
		{"gres/gpu=4,gres/gpu:a100=4", "a100", 4, true},
		{"gres/gpu:a100=2,gres/gpu:h100=2", "", 4, true},
		{"gres/gpu:a100=2", "a100", 2, true},
		{"gres/gpu=0", "", 0, true},
		{"gres/gpu=four", "", 0, false},
		{"gres/gpumem=40G,gres/gpuutil=9", "", 0, true},
	} {
		if n, typ, ok := gpusOf(c.tres); n != c.n || typ != c.typ || ok != c.ok {
			t.Errorf("%q: %d of %q, %v, want %d of %q, %v", c.tres, n, typ, ok, c.n, c.typ, c.ok)
		}
	}
}
