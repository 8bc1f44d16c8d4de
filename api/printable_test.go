package api

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

// hostile are outputs of jobs that mean harm, and what of them is shown.
var hostile = []struct{ name, in, want string }{
	{"plain", "loss 0.1\tstep 2\n", "loss 0.1\tstep 2\n"},
	// No terminal minds; pages have to render it as text.
	{"script", "<script>alert(1)</script>", "<script>alert(1)</script>"},
	{"colours", "\x1b[31mred\x1b[0m \x1b[1;38;5;208mx\x1b[m \x1b[38:2::1:2:3mdots\x1b[0m",
		"\x1b[31mred\x1b[0m \x1b[1;38;5;208mx\x1b[m \x1b[38:2::1:2:3mdots\x1b[0m"},
	{"colour left on", "\x1b[41mred", "\x1b[41mred\x1b[m"},
	{"link (OSC 8)", "\x1b]8;;http://evil/\x1b\\click\x1b]8;;\x1b\\", "click"},
	{"clipboard (OSC 52)", "a\x1b]52;c;cm0gLXJmIH4K\ab", "ab"},
	{"title", "a\x1b]0;root@host\ab", "ab"},
	{"title by C1", "a\u009d0;root\u009cb", "ab"},
	{"device control (DCS)", "a\x1bP$qm\x1b\\b", "ab"},
	{"DCS by C1", "a\u0090q#0\u009cb", "ab"},
	{"strings (SOS, PM, APC)", "a\x1bXx\x1b\\b\x1b^y\x1b\\c\x1b_z\x1b\\d", "abcd"},
	{"never ended", "a\x1b]52;c;AAAA\nb\n", "a\nb\n"},
	{"ended by CAN", "a\x1b]0;x\x18b", "ab"},
	{"ESC in a string", "a\x1b]0;x\x1b\x1b\\b", "ab"},
	{"cursor", "a\x1b[2J\x1b[1;1H\x1b[10Ab\x1b[?1049hc\x1b[6nd", "abcd"},
	{"cursor by C1", "a\u009b2Jb\u009b31mc\u009b0m", "ab\x1b[31mc\x1b[0m"},
	{"private SGR", "a\x1b[>4;2mb\x1b[?1mc", "abc"},
	{"SGR with an intermediate", "a\x1b[1$mb", "ab"},
	{"reset and charset", "a\x1bcb\x1b(0c\x1b#8d", "abcd"},
	{"ESC ESC", "a\x1b\x1b[2Jb", "ab"},
	{"sequence cut by a line", "a\x1b[31\nb", "a\nb"},
	{"carriage return", "evil\rgood\n", "evil\ngood\n"},
	{"progress bar", "\r 1%\r 2%\r\n", "\n 1%\n 2%\n"},
	{"carriage returns", "a\r\r\nb", "a\nb"},
	{"at the end", "a\r", "a\n"},
	{"backspace", "evil\b\b\b\bgood", "evilgood"},
	{"bell, shifts, delete, NUL", "a\a\x0e\x0f\x7f\x00b", "ab"},
	{"other C1", "a\u0085\u008db", "ab"},
	{"bidi", "a\u202egpj.exe\u202c\u2066b\u2069\u200e\u200f\u061cc", "agpj.exebc"},
	{"invalid UTF-8", "a\xff\xc3(\xe2\x28b\xed\xa0\x80", "a\ufffd\ufffd(\ufffd(b\ufffd\ufffd\ufffd"},
	{"raw C1 bytes", "a\x9b2Jb", "a\ufffd2Jb"}, // no UTF-8, so no control character either
	{"cut rune", "a\xe2\x82", "a\ufffd"},
	{"other scripts", "é 漢字 🚀", "é 漢字 🚀"},
}

// Ensure that nothing but text and colours reaches a terminal, and that it is the same however the output is cut into
// pieces.
func TestPromise22Printable(t *testing.T) {
	for _, c := range hostile {
		if got := Printable(c.in); got != c.want {
			t.Errorf("%s: %q is shown as %q, want %q", c.name, c.in, got, c.want)
		}
		var p Printer
		var got []byte
		for i := range len(c.in) {
			got = p.Append(got, []byte{c.in[i]})
		}
		if got = p.End(got); string(got) != c.want {
			t.Errorf("%s, byte by byte: %q, want %q", c.name, got, c.want)
		}
	}
}

// Ensure that a bomb of colours and a sequence without end keep nothing.
func TestPromise22PrinterKeepsLittle(t *testing.T) {
	for name, bomb := range map[string]string{"SGR": "1;", "params": "9", "runes": "\xf0", "strings": "\x1b]"} {
		var p Printer
		p.Append(nil, []byte("\x1b["))
		var n int
		for range 1000 {
			n += len(p.Append(nil, []byte(strings.Repeat(bomb, 1000))))
		}
		if cap(p.held) > 2*maxSGR+16 || cap(p.part) > 16 {
			t.Errorf("%s: keeps %d and %d bytes", name, cap(p.held), cap(p.part))
		}
	}
}

// FuzzPrintable finds output by which more than colours reaches the terminal.
func FuzzPrintable(f *testing.F) {
	for _, c := range hostile {
		f.Add([]byte(c.in), 3)
	}
	f.Fuzz(func(t *testing.T, in []byte, cut int) {
		whole := Printable(string(in))
		if !utf8.ValidString(whole) {
			t.Fatalf("%q is shown as %q, no UTF-8", in, whole)
		}
		var p Printer
		cut = max(0, min(cut, len(in)))
		if got := string(p.End(p.Append(p.Append(nil, in[:cut]), in[cut:]))); got != whole {
			t.Fatalf("%q is shown as %q in one piece and %q in two", in, whole, got)
		}
		rest := whole
		for {
			before, after, found := strings.Cut(rest, "\x1b")
			for _, r := range before {
				if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 || turns(r) {
					t.Fatalf("%q is shown as %q, with %U", in, whole, r)
				}
			}
			if !found {
				return
			}
			end := strings.IndexByte(after, 'm')
			if end < 1 || after[0] != '[' || strings.Trim(after[1:end], "0123456789;:") != "" || end > maxSGR {
				t.Fatalf("%q is shown as %q: a sequence that is no SGR", in, whole)
			}
			rest = after[end+1:]
		}
	})
}

func BenchmarkPrinter(b *testing.B) {
	line := []byte("\x1b[32mepoch\x1b[0m 3 step 1200/9000 loss=0.1234 lr=1e-4 samples/s=812.3\n")
	text := bytes.Repeat(line, 1<<20/len(line))
	var p Printer
	dst := make([]byte, 0, 2<<20)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		dst = p.Append(dst[:0], text)
	}
}
