package api

import (
	"encoding/json"
	"strings"
	"testing"
)

// Ensure that pieces of output are read as encoding/json reads them, and what a Server writes of usual output without
// further checks.
func TestReadOutput(t *testing.T) {
	for _, text := range []string{"", "a line\nanother\n", "\x1b[32mgreen\x1b[0m\r\t\"<&>\"\\ \x00\x7f", "müller …"} {
		b := written(7, text)
		var out Output
		if !scanOutput(b, &out) || out != (Output{Attempt: 7, Text: text}) {
			t.Errorf("%s: read as %+v", b, out)
		}
	}
	for _, b := range []string{`{"text":"a","attempt":1}`, `{"attempt":1,"text":"\u00e9\u2028"}`,
		`{"attempt":1, "text":"a"}`, `{"attempt":1,"text":"a","more":"b"}`} {
		sameOutput(t, []byte(b))
	}
}

// written is a piece of an output as a server writes it.
func written(attempt int, text string) []byte {
	b, _ := json.Marshal(Output{Attempt: attempt, Text: text})
	return b
}

// sameOutput compares readOutput with its naive twin.
func sameOutput(t *testing.T, b []byte) {
	t.Helper()
	var got, want Output
	wrong := json.Unmarshal(b, &want)
	if err := readOutput(b, &got); (err == nil) != (wrong == nil) || wrong == nil && got != want {
		t.Errorf("%s: got %+v, %v, want %+v, %v", b, got, err, want, wrong)
	}
}

func FuzzReadOutput(f *testing.F) {
	f.Add(written(1, "a line\n\x1b[m"))
	f.Add([]byte(`{"attempt":01,"text":"\u12"}`))
	f.Fuzz(sameOutput)
}

// BenchmarkReadOutput is what a client does with a piece of output.
func BenchmarkReadOutput(b *testing.B) {
	text := strings.Repeat("[2026-11-22 03:44:19] step 100/1000 | loss: 2.4000 | 812.5 samples/s | lr 3.0e-4\n",
		64<<10/81)
	data := written(1, text)
	for name, read := range map[string]func([]byte, *Output) error{"readOutput": readOutput,
		"encoding-json": func(t []byte, o *Output) error { return json.Unmarshal(t, o) }} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if err := read(data, new(Output)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
