package web

import (
	"math"
	"os"
	"regexp"
	"strconv"
	"testing"
)

// linear is a colour as light: red, green and blue from 0 to 1.
type linear [3]float64

func colourOf(t *testing.T, hex string) linear {
	t.Helper()
	n, err := strconv.ParseUint(hex[1:], 16, 32)
	if err != nil {
		t.Fatal(err)
	}
	var c linear
	for i := range c {
		x := float64(n>>(16-8*i)&255) / 255
		if c[i] = x / 12.92; x > .04045 {
			c[i] = math.Pow((x+.055)/1.055, 2.4)
		}
	}
	return c
}

func (c linear) luminance() float64 { return .2126*c[0] + .7152*c[1] + .0722*c[2] }

func contrast(a, b linear) float64 {
	x, y := a.luminance(), b.luminance()
	return (max(x, y) + .05) / (min(x, y) + .05)
}

// eyes are normal vision and three deficiencies (Machado et al., TVCG 2009, severity 1).
var eyes = map[string][9]float64{
	"normal":       {1, 0, 0, 0, 1, 0, 0, 0, 1},
	"protanopia":   {.152286, 1.052583, -.204868, .114503, .786281, .099216, -.003882, -.048116, 1.051998},
	"deuteranopia": {.367322, .860646, -.227968, .280085, .672501, .047413, -.011820, .042940, .968881},
	"tritanopia":   {1.255528, -.076749, -.178779, -.078411, .930809, .147602, .004733, .691367, .303900},
}

func (c linear) seenBy(m [9]float64) (d linear) {
	for i := range d {
		d[i] = min(max(m[3*i]*c[0]+m[3*i+1]*c[1]+m[3*i+2]*c[2], 0), 1)
	}
	return d
}

// lab returns L*, a* and b* under D65.
func (c linear) lab() [3]float64 {
	f := func(t float64) float64 {
		if t > .008856 {
			return math.Cbrt(t)
		}
		return 7.787*t + 16./116
	}
	x := f((.4124564*c[0] + .3575761*c[1] + .1804375*c[2]) / .95047)
	y := f(.2126729*c[0] + .7151522*c[1] + .0721750*c[2])
	z := f((.0193339*c[0] + .1191920*c[1] + .9503041*c[2]) / 1.08883)
	return [3]float64{116*y - 16, 500 * (x - y), 200 * (y - z)}
}

// ciede2000 is the difference of two colours (Sharma, Wu, Dalal 2005).
func ciede2000(p, q [3]float64) float64 {
	mean := (math.Hypot(p[1], p[2]) + math.Hypot(q[1], q[2])) / 2
	g := .5 * (1 - math.Sqrt(math.Pow(mean, 7)/(math.Pow(mean, 7)+math.Pow(25, 7))))
	a1, a2 := p[1]*(1+g), q[1]*(1+g)
	c1, c2 := math.Hypot(a1, p[2]), math.Hypot(a2, q[2])
	h1, h2 := hue(a1, p[2]), hue(a2, q[2])
	turn, middle := h2-h1, (h1+h2)/2
	switch {
	case c1*c2 == 0:
		turn, middle = 0, h1+h2
	case turn > 180:
		turn, middle = turn-360, middle+180
	case turn < -180:
		turn, middle = turn+360, middle+180
	}
	l, c := (p[0]+q[0])/2, (c1+c2)/2
	dh := 2 * math.Sqrt(c1*c2) * sine(turn/2)
	t := 1 - .17*cosine(middle-30) + .24*cosine(2*middle) + .32*cosine(3*middle+6) - .2*cosine(4*middle-63)
	sl := 1 + .015*(l-50)*(l-50)/math.Sqrt(20+(l-50)*(l-50))
	sc, sh := 1+.045*c, 1+.015*c*t
	r := -2 * math.Sqrt(math.Pow(c, 7)/(math.Pow(c, 7)+math.Pow(25, 7))) *
		sine(60*math.Exp(-((middle-275)/25)*((middle-275)/25)))
	x, y, z := (q[0]-p[0])/sl, (c2-c1)/sc, dh/sh
	return math.Sqrt(x*x + y*y + z*z + r*y*z)
}

func sine(degrees float64) float64   { return math.Sin(degrees * math.Pi / 180) }
func cosine(degrees float64) float64 { return math.Cos(degrees * math.Pi / 180) }

func hue(a, b float64) float64 {
	if h := math.Atan2(b, a) * 180 / math.Pi; h >= 0 {
		return h
	}
	return math.Atan2(b, a)*180/math.Pi + 360
}

// Ensure that the difference of colours is the published one: pairs of Sharma's table.
func TestCIEDE2000(t *testing.T) {
	for _, x := range []struct {
		p, q [3]float64
		want float64
	}{
		{[3]float64{50, 2.6772, -79.7751}, [3]float64{50, 0, -82.7485}, 2.0425},
		{[3]float64{50, 2.5, 0}, [3]float64{73, 25, -18}, 27.1492},
		{[3]float64{2.0776, .0795, -1.1350}, [3]float64{.9033, -.0636, -.5514}, .9082},
		{[3]float64{22.7233, 20.0904, -46.6940}, [3]float64{23.0331, 14.9730, -42.5619}, 2.0373},
	} {
		if got := ciede2000(x.p, x.q); math.Abs(got-x.want) > 1e-4 {
			t.Errorf("%v to %v: %v, want %v", x.p, x.q, got, x.want)
		}
	}
}

// Ensure that each hue of either palette stands out from its ground, 3 to 1 at least, and that any two of hues, neutral
// and ground differ by 15 at least, to eyes that see all colours and to those that do not.
func TestPalette(t *testing.T) {
	source, err := os.ReadFile("page/palette.ts")
	if err != nil {
		t.Fatal(err)
	}
	one := regexp.MustCompile(`(?s)export const (\w+): Palette = \{(.*?)\n\};`)
	palettes := one.FindAllStringSubmatch(string(source), -1)
	if len(palettes) != 2 {
		t.Fatalf("%d palettes, want two", len(palettes))
	}
	hex := regexp.MustCompile(`#[0-9a-f]{6}`)
	for _, p := range palettes {
		all := hex.FindAllString(p[2], -1)
		if len(all) != 11 {
			t.Fatalf("%s: %d colours, want ground, neutral, ink and eight hues", p[1], len(all))
		}
		ground := colourOf(t, all[0])
		list := append([]string{all[0], all[1]}, all[3:]...)
		for i, a := range list {
			if x := contrast(colourOf(t, a), ground); i > 0 && x < 3 {
				t.Errorf("%s: %s on %s: %.2f to 1, want at least 3", p[1], a, all[0], x)
			}
			for _, b := range list[:i] {
				for eye, m := range eyes {
					d := ciede2000(colourOf(t, a).seenBy(m).lab(), colourOf(t, b).seenBy(m).lab())
					if d < 15 {
						t.Errorf("%s: %s and %s differ by %.1f to %s vision, want at least 15", p[1], a, b, d, eye)
					}
				}
			}
		}
	}
}
