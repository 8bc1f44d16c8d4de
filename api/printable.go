package api

import (
	"bytes"
	"unicode/utf8"
)

// Printable returns what is safe to be shown of text by a terminal, see Printer.
func Printable(text string) string {
	var p Printer
	return string(p.End(p.Append(nil, []byte(text))))
}

// Printer makes what jobs write safe to be shown by a terminal, piece by piece; the zero value is ready to use. Nothing
// passes by which output could move the cursor, change the title, the clipboard, a link or a colour of the terminal,
// answer for its user or hide what was written. Of control characters newlines and tabs are left, of escape sequences
// those that colour and emphasise (SGR, CSI ... m). A carriage return that no newline follows becomes one, so that what
// it would have painted over stays. Marks that change the direction of text are dropped: it is shown in the order in
// which it was written. Bytes that are no UTF-8 become U+FFFD.
//
// It keeps a few bytes of the last piece at most, whatever is written.
type Printer struct {
	state  escape
	held   []byte // the first bytes of a sequence that may be SGR
	part   []byte // the first bytes of a rune
	cr     bool   // the last was a carriage return
	styled bool   // the last SGR was no reset
	styles bool   // that in held is none
}

// escape says in which part of an escape sequence the text is.
type escape uint8

const (
	plain     escape = iota
	escaped          // behind ESC
	sequence         // behind CSI: held may be SGR still
	dropped          // behind CSI: it is none
	text             // of OSC, DCS and the like: up to ST, BEL or the end of the line
	textEnd          // an ESC in it, perhaps that of ST
	charset          // behind ESC and an intermediate byte: up to the last byte
	maxSGR    = 64   // bytes of a sequence that is passed on
	esc       = 0x1b // ESC
	bidiFirst = 0x202a
)

// Append appends what is safe of a piece to dst.
func (p *Printer) Append(dst, piece []byte) []byte {
	if len(p.part) > 0 {
		piece = append(p.part, piece...)
		p.part = nil
	}
	for len(piece) > 0 {
		if p.state == plain && !p.cr {
			n := plainBytes(piece)
			dst, piece = append(dst, piece[:n]...), piece[n:]
		}
		switch {
		case len(piece) == 0:
			return dst
		case piece[0] < utf8.RuneSelf:
			dst = p.next(dst, rune(piece[0]))
			piece = piece[1:]
			continue
		case !utf8.FullRune(piece):
			p.part = bytes.Clone(piece)
			return dst
		}
		r, n := utf8.DecodeRune(piece)
		dst = p.next(dst, r)
		piece = piece[n:]
	}
	return dst
}

// End appends what is left at the end of an output: a rune that was cut, and a reset of colours.
func (p *Printer) End(dst []byte) []byte {
	if p.state == plain && p.cr {
		dst = append(dst, '\n')
	}
	if p.state == plain && len(p.part) > 0 {
		dst = append(dst, "\ufffd"...)
	}
	if p.styled {
		dst = append(dst, "\x1b[m"...)
	}
	*p = Printer{}
	return dst
}

// plainBytes returns how many of the first bytes of b are printable ASCII, newlines or tabs.
func plainBytes(b []byte) int {
	for i, c := range b {
		if (c < ' ' && c != '\n' && c != '\t') || c >= 0x7f {
			return i
		}
	}
	return len(b)
}

// next takes one rune. The end of a line ends all that was started in it.
func (p *Printer) next(dst []byte, r rune) []byte {
	if r == '\n' {
		p.state = plain
	}
	switch p.state {
	case plain:
		return p.plain(dst, r)
	case escaped:
		p.introduce(r)
	case sequence, dropped:
		return p.sequence(dst, r)
	case text:
		p.state = endOfText(r)
	case textEnd:
		if p.state = endOfText(r); r == '\\' {
			p.state = plain
		}
	case charset:
		if r < ' ' || r > '/' {
			p.state = plain
		}
	}
	return dst
}

// endOfText returns the state behind r inside the text of a sequence.
func endOfText(r rune) escape {
	switch r {
	case '\a', 0x9c, 0x18, 0x1a: // BEL, ST; CAN and SUB break it off
		return plain
	case esc:
		return textEnd
	}
	return text
}

// plain takes a rune outside of sequences.
func (p *Printer) plain(dst []byte, r rune) []byte {
	if p.cr {
		p.cr = false
		if r != '\n' && r != '\r' {
			dst = append(dst, '\n')
		}
	}
	switch {
	case r == '\n' || r == '\t':
		return append(dst, byte(r))
	case r < ' ' || r >= 0x7f && r < 0xa0:
		p.control(r)
		return dst
	case turns(r):
		return dst
	}
	return utf8.AppendRune(dst, r)
}

// control takes a control character outside of sequences.
func (p *Printer) control(r rune) {
	switch r {
	case '\r':
		p.cr = true
	case esc:
		p.state = escaped
	case 0x9b: // the same as ESC [, in one character
		p.state, p.held, p.styles = sequence, append(p.held[:0], esc, '['), false
	case 0x90, 0x98, 0x9d, 0x9e, 0x9f:
		p.state = text
	}
}

// turns reports whether r changes the direction of text.
func turns(r rune) bool {
	return r >= bidiFirst && r <= bidiFirst+4 || r >= 0x2066 && r <= 0x2069 || r == 0x200e || r == 0x200f || r == 0x061c
}

// introduce takes what follows an ESC.
func (p *Printer) introduce(r rune) {
	switch {
	case r == '[':
		p.state, p.held, p.styles = sequence, append(p.held[:0], esc, '['), false
	case r == ']' || r == 'P' || r == 'X' || r == '^' || r == '_':
		p.state = text
	case r >= ' ' && r <= '/':
		p.state = charset
	case r == esc:
	default:
		p.state = plain
	}
}

// sequence takes what follows a CSI, up to its last byte. SGR has digits, semicolons and colons before its m.
func (p *Printer) sequence(dst []byte, r rune) []byte {
	switch {
	case r >= '0' && r <= ';' && p.state == sequence && len(p.held) < maxSGR:
		p.held = append(p.held, byte(r))
		p.styles = p.styles || r != '0' && r != ';'
		return dst
	case r >= ' ' && r <= '?':
		p.state = dropped
		return dst
	case r == esc:
		p.state = escaped
		return dst
	case r == 'm' && p.state == sequence:
		dst = append(append(dst, p.held...), 'm')
		p.styled = p.styles
	}
	p.state = plain
	return dst
}
