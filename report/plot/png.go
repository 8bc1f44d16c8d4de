package plot

import (
	"image"
	"image/draw"
	"image/png"
	"io"
	"math"

	xdraw "golang.org/x/image/draw"
	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"
)

// canvas paints a scene as pixels.
type canvas struct {
	img    *image.RGBA
	scale  float64 // pixels of one of CSS
	colour *palette
	faces  map[float64]font.Face // by size; below 0 = bold
	pen    *vector.Rasterizer
}

// paint returns the scene as pixels, scale for each of CSS.
func (s *scene) paint(style Style, scale float64) (*image.RGBA, error) {
	w, h := int(math.Ceil(s.w*scale)), int(math.Ceil(s.h*scale))
	c := &canvas{img: image.NewRGBA(image.Rect(0, 0, w, h)), scale: scale, colour: style.fixed(),
		faces: map[float64]font.Face{}, pen: vector.NewRasterizer(w, h)}
	draw.Draw(c.img, c.img.Bounds(), image.NewUniform(c.colour.rgb(solid(ground))), image.Point{}, draw.Src)
	for i := range s.shapes {
		if err := c.shape(&s.shapes[i]); err != nil {
			return nil, err
		}
	}
	return c.img, nil
}

// writePNG writes the scene as pixels.
func (s *scene) writePNG(w io.Writer, style Style, scale float64) error {
	img, err := s.paint(style, scale)
	if err != nil {
		return err
	}
	return png.Encode(w, img)
}

func (c *canvas) shape(s *shape) error {
	x, y := s.at.x, s.at.y
	switch s.kind {
	case rectangle:
		c.rect(c.px(x), c.px(y), c.px(x+s.w), c.px(y+s.h), s.fill)
	case polygon:
		c.area(s.path, s.fill)
	case polyline:
		for i := 1; i < len(s.path); i++ {
			c.segment(s.path[i-1], s.path[i], s)
		}
	case words:
		return c.words(s)
	case raster:
		to := image.Rect(c.px(x), c.px(y), c.px(x+s.w), c.px(y+s.h))
		xdraw.NearestNeighbor.Scale(c.img, to, s.image, s.image.Bounds(), draw.Over, nil)
	}
	return nil
}

func (c *canvas) px(x float64) int { return int(math.Round(x * c.scale)) }

// rect fills whole pixels, one at least: bars that meet leave no seam, and many are painted fast.
func (c *canvas) rect(x0, y0, x1, y1 int, f fill) {
	box := image.Rect(x0, y0, max(x1, x0+1), max(y1, y0+1)).Intersect(c.img.Bounds())
	if box.Empty() {
		return
	}
	colour := c.colour.rgb(f)
	if !f.hatched {
		draw.Draw(c.img, box, image.NewUniform(colour), image.Point{}, draw.Src)
		return
	}
	colour = c.colour.rgb(solid(f.tone))
	wide, dark := int(math.Round(5.6*c.scale)), int(math.Round(2.2*c.scale))
	for y := box.Min.Y; y < box.Max.Y; y++ {
		for x := box.Min.X; x < box.Max.X; x++ {
			if (x+y)%wide < dark {
				c.img.SetRGBA(x, y, colour)
			}
		}
	}
}

// area fills a polygon.
func (c *canvas) area(path []point, f fill) {
	if len(path) < 3 {
		return
	}
	low, high := path[0], path[0]
	for _, p := range path {
		low, high = point{min(low.x, p.x), min(low.y, p.y)}, point{max(high.x, p.x), max(high.y, p.y)}
	}
	box := image.Rect(int(low.x*c.scale)-1, int(low.y*c.scale)-1, int(high.x*c.scale)+2,
		int(high.y*c.scale)+2).Intersect(c.img.Bounds())
	if box.Empty() {
		return
	}
	c.pen.Reset(box.Dx(), box.Dy())
	at := func(p point) (x, y float32) {
		return float32(p.x*c.scale - float64(box.Min.X)), float32(p.y*c.scale - float64(box.Min.Y))
	}
	for i, p := range path {
		if x, y := at(p); i == 0 {
			c.pen.MoveTo(x, y)
		} else {
			c.pen.LineTo(x, y)
		}
	}
	c.pen.ClosePath()
	c.pen.Draw(c.img, box, image.NewUniform(c.colour.rgb(f)), image.Point{})
}

// segment draws a line between two points, in dashes where the shape has them.
func (c *canvas) segment(a, b point, s *shape) {
	length := math.Hypot(b.x-a.x, b.y-a.y)
	if length == 0 {
		return
	}
	step := length
	if s.dashed {
		step = 3 * s.line
	}
	dx, dy := (b.x-a.x)/length, (b.y-a.y)/length
	nx, ny := -dy*s.line/2, dx*s.line/2
	cap := s.line / 2
	if s.dashed {
		cap = 0
	}
	for from := 0.0; from < length; from += step * 2 {
		u, v := max(from-cap, -cap), min(from+step, length)+cap
		p, q := point{a.x + dx*u, a.y + dy*u}, point{a.x + dx*v, a.y + dy*v}
		c.area([]point{{p.x + nx, p.y + ny}, {q.x + nx, q.y + ny}, {q.x - nx, q.y - ny}, {p.x - nx, p.y - ny}}, s.fill)
	}
}

func (c *canvas) words(s *shape) error {
	face, err := c.face(s.size, s.bold)
	if err != nil {
		return err
	}
	d := font.Drawer{Dst: c.img, Src: image.NewUniform(c.colour.rgb(s.fill)), Face: face}
	x := s.at.x * c.scale
	switch wide := float64(d.MeasureString(s.text)) / 64; s.anchor {
	case middle:
		x -= wide / 2
	case right:
		x -= wide
	}
	d.Dot = fixed.Point26_6{X: fixed.Int26_6(x * 64), Y: fixed.Int26_6(s.at.y * c.scale * 64)}
	d.DrawString(s.text)
	return nil
}

// face returns letters of a size.
func (c *canvas) face(size float64, bold bool) (font.Face, error) {
	key, file := size, goregular.TTF
	if bold {
		key, file = -size, gobold.TTF
	}
	if f := c.faces[key]; f != nil {
		return f, nil
	}
	parsed, err := opentype.Parse(file)
	if err != nil {
		return nil, err
	}
	f, err := opentype.NewFace(parsed, &opentype.FaceOptions{Size: size * c.scale, DPI: 72})
	if err == nil {
		c.faces[key] = f
	}
	return f, err
}
