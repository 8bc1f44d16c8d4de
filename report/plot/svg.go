package plot

import (
	"bytes"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"image/png"
	"io"
	"math"
	"strconv"
	"strings"
)

// fonts are those that a reader is likely to have. Text stays text: it can be found, copied and read aloud.
const fonts = `system-ui,-apple-system,"Segoe UI","Helvetica Neue",Arial,"DejaVu Sans",sans-serif`

// svg writes a scene.
type svg struct {
	bytes.Buffer
	used map[string]bool // patterns and classes that are needed
	font float64         // size of most text
}

// writeSVG writes the scene as one file that asks no one for anything and runs nothing.
func (s *scene) writeSVG(w io.Writer, style Style, width string) error {
	body := &svg{used: map[string]bool{}, font: s.font}
	for i := 0; i < len(s.shapes); i++ {
		if n := plainRects(s.shapes[i:]); n > 1 {
			body.joined(s.shapes[i : i+n])
			i += n - 1
			continue
		}
		if err := body.shape(&s.shapes[i]); err != nil {
			return err
		}
	}
	head := &svg{}
	fmt.Fprintf(head, `<svg xmlns="http://www.w3.org/2000/svg" width="%s" viewBox="0 0 %s %s" role="img" `+
		`aria-labelledby="t d" font-family='%s' font-size="%s">`+"\n", width, num(s.w), num(s.h), fonts, num(s.font))
	fmt.Fprintf(head, "<title id=\"t\">%s</title>\n<desc id=\"d\">%s</desc>\n", escaped(s.name), escaped(s.about))
	head.style(style.fixed(), "", body.used)
	if style == Screen && !s.patched {
		head.style(&night, "@media (prefers-color-scheme:dark)", body.used)
	}
	head.patterns(body.used)
	fmt.Fprintf(head, "<rect class=\"c0\" width=\"%s\" height=\"%s\"/>\n", num(s.w), num(s.h))
	for _, b := range [][]byte{head.Bytes(), body.Bytes(), []byte("</svg>\n")} {
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	return nil
}

// style writes the colours that are used, as classes: c is an area's, l a line's.
func (b *svg) style(p *palette, media string, used map[string]bool) {
	b.WriteString("<style>")
	if media != "" {
		b.WriteString(media + "{")
	}
	for t := range p {
		if name := "c" + strconv.Itoa(t); used[name] || t == int(ground) {
			b.WriteString("." + name + "{fill:" + p[t] + "}")
		}
		if name := "l" + strconv.Itoa(t); used[name] {
			b.WriteString("." + name + "{fill:none;stroke:" + p[t] + "}")
		}
	}
	if media != "" {
		b.WriteString("}")
	}
	b.WriteString("</style>\n")
}

// patterns writes the stripes that are used.
func (b *svg) patterns(used map[string]bool) {
	for t := range tones {
		if name := "h" + strconv.Itoa(int(t)); used[name] {
			fmt.Fprintf(b, `<pattern id="%s" width="4" height="4" patternUnits="userSpaceOnUse" `+
				`patternTransform="rotate(45)"><rect class="c%d" width="1.6" height="4"/></pattern>`+"\n", name, t)
		}
	}
}

// paint returns the attributes of an area.
func (b *svg) paint(f fill) string {
	n := strconv.Itoa(int(f.tone))
	if f.hatched {
		b.used["h"+n], b.used["c"+n] = true, true
		return ` fill="url(#h` + n + `)"`
	}
	b.used["c"+n] = true
	if f.part < 1 {
		return ` class="c` + n + `" fill-opacity="` + num(f.part) + `"`
	}
	return ` class="c` + n + `"`
}

func (b *svg) shape(s *shape) error {
	switch s.kind {
	case rectangle:
		fmt.Fprintf(b, `<rect x="%s" y="%s" width="%s" height="%s"%s`, num(s.at.x), num(s.at.y), num(s.w), num(s.h),
			b.paint(s.fill))
		b.close("rect", s.title)
	case polygon:
		b.WriteString(`<path d="` + route(s.path) + `Z"` + b.paint(s.fill))
		b.close("path", s.title)
	case polyline:
		name := "l" + strconv.Itoa(int(s.fill.tone))
		b.used[name] = true
		fmt.Fprintf(b, `<path class="%s" d="%s" stroke-width="%s"`, name, route(s.path), num(s.line))
		if s.dashed {
			fmt.Fprintf(b, ` stroke-dasharray="%s"`, num(s.line*3))
		}
		b.close("path", s.title)
	case words:
		b.words(s)
	case raster:
		return b.raster(s)
	}
	return nil
}

// plainRects returns how many shapes at the start of a list are rectangles that say nothing of themselves.
func plainRects(list []shape) (n int) {
	for n < len(list) && list[n].kind == rectangle && list[n].title == "" {
		n++
	}
	return n
}

// joined writes rectangles as one path for each fill, in the order in which fills appear, stripes last.
func (b *svg) joined(list []shape) {
	paths, order := map[fill]*strings.Builder{}, []fill{}
	for i := range list {
		s := &list[i]
		if paths[s.fill] == nil {
			paths[s.fill], order = new(strings.Builder), append(order, s.fill)
		}
		x, y := tenth(s.at.x), tenth(s.at.y)
		w, h := max(tenth(s.at.x+s.w)-x, .1), max(tenth(s.at.y+s.h)-y, .1)
		to := paths[s.fill]
		to.WriteString("M" + num(x) + " " + num(y) + "h" + num(w) + "v" + num(h) + "h" + num(-w) + "z")
	}
	for _, hatched := range []bool{false, true} {
		for _, f := range order {
			if f.hatched == hatched {
				b.WriteString(`<path` + b.paint(f) + ` d="` + paths[f].String() + "\"/>\n")
			}
		}
	}
}

func tenth(x float64) float64 { return math.Round(x*10) / 10 }

func (b *svg) close(tag, title string) {
	if title == "" {
		b.WriteString("/>\n")
		return
	}
	b.WriteString("><title>" + escaped(title) + "</title></" + tag + ">\n")
}

func (b *svg) words(s *shape) {
	if s.text == "" {
		return
	}
	fmt.Fprintf(b, `<text x="%s" y="%s"%s`, num(s.at.x), num(s.at.y), b.paint(s.fill))
	if a := [...]string{"", "middle", "end"}[s.anchor]; a != "" {
		b.WriteString(` text-anchor="` + a + `"`)
	}
	if s.bold {
		b.WriteString(` font-weight="600"`)
	}
	if s.size != b.font {
		b.WriteString(` font-size="` + num(s.size) + `"`)
	}
	b.WriteString(">" + escaped(s.text) + "</text>\n")
}

func (b *svg) raster(s *shape) error {
	var file bytes.Buffer
	if err := png.Encode(&file, s.image); err != nil {
		return err
	}
	fmt.Fprintf(b, `<image x="%s" y="%s" width="%s" height="%s" preserveAspectRatio="none" `+
		`href="data:image/png;base64,%s"/>`+"\n", num(s.at.x), num(s.at.y), num(s.w), num(s.h),
		base64.StdEncoding.EncodeToString(file.Bytes()))
	return nil
}

// route writes a path to a tenth: where it starts from the corner, then from point to point, without those on the way.
func route(path []point) string {
	var b strings.Builder
	kept := make([]point, 0, len(path))
	for _, p := range path {
		p = point{tenth(p.x), tenth(p.y)}
		for n := len(kept); n > 0; n = len(kept) {
			last := kept[n-1]
			onWay := n > 1 && (kept[n-2].y == last.y && last.y == p.y && (last.x-kept[n-2].x)*(p.x-last.x) >= 0 ||
				kept[n-2].x == last.x && last.x == p.x && (last.y-kept[n-2].y)*(p.y-last.y) >= 0)
			if last != p && !onWay {
				break
			}
			kept = kept[:n-1]
		}
		kept = append(kept, p)
	}
	for i, p := range kept {
		b.WriteByte("ML"[min(i, 1)])
		b.WriteString(num(p.x) + " " + num(p.y))
	}
	return b.String()
}

// num writes a number to a hundredth.
func num(x float64) string {
	text := strconv.FormatFloat(x, 'f', 2, 64)
	text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	if text == "-0" {
		return "0"
	}
	return text
}

// escaped returns text, which is harmless, as it stands in XML.
func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text))
	return b.String()
}
