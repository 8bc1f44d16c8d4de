package plot

import (
	"image"
	"math"
)

// tone is a colour by what it is for; a style says which one that is.
type tone uint8

const (
	ground tone = iota
	ink
	quiet // text that explains
	rule  // thin lines
	panel // an empty track
	neutral
	hue0  // the first of eight hues
	tones = hue0 + hues
)

const hues = 8

// hue returns the tone of the n-th hue.
func hue(n int) tone { return hue0 + tone(n) }

// fill is how an area is painted.
type fill struct {
	tone    tone
	part    float64 // of it, 0 to 1; the rest is the ground
	hatched bool    // stripes of tone over what is there
}

func solid(t tone) fill { return fill{tone: t, part: 1} }

func pale(t tone) fill { return fill{tone: t, part: .42} }

// anchor is which point of a text is where it is put.
type anchor uint8

const (
	left anchor = iota
	middle
	right
)

// point is a place in pixels of CSS, 96 an inch, from the upper left corner.
type point struct{ x, y float64 }

// shape is one thing in a picture; the fields that count depend on the kind.
type shape struct {
	kind   shapeKind
	at     point // upper left corner; of a text where its line of letters stands
	w, h   float64
	fill   fill
	line   float64 // width of a line
	dashed bool
	path   []point
	text   string
	title  string // says what the shape is, where pointed at
	size   float64
	bold   bool
	anchor anchor
	image  image.Image
}

type shapeKind uint8

const (
	rectangle shapeKind = iota
	polygon
	polyline
	words
	raster
)

// scene is a picture under construction.
type scene struct {
	w, h    float64
	font    float64 // size of most text
	about   string  // what the picture says, in a sentence
	name    string
	shapes  []shape
	patched bool // a raster is in it, which has one ground
	dark    bool // of that of the style Dark
}

func (s *scene) rect(x, y, w, h float64, f fill) *shape {
	s.shapes = append(s.shapes, shape{kind: rectangle, at: point{x, y}, w: w, h: h, fill: f})
	return &s.shapes[len(s.shapes)-1]
}

func (s *scene) area(f fill, path ...point) {
	s.shapes = append(s.shapes, shape{kind: polygon, fill: f, path: path})
}

func (s *scene) stroke(t tone, width float64, path ...point) *shape {
	s.shapes = append(s.shapes, shape{kind: polyline, fill: solid(t), line: width, path: path})
	return &s.shapes[len(s.shapes)-1]
}

// write puts text where there is room enough for it: what is longer is cut.
func (s *scene) write(x, y float64, a anchor, t tone, room float64, text string) *shape {
	text = cut(harmless(text), room, s.font)
	s.shapes = append(s.shapes, shape{kind: words, at: point{x, y}, fill: solid(t), text: text, size: s.font,
		anchor: a})
	return &s.shapes[len(s.shapes)-1]
}

// line is the height of a line of text.
func (s *scene) line() float64 { return math.Round(s.font * 1.45) }
