package plot

import (
	"image/color"
	"strconv"
)

// Style is for what a picture is made.
type Style string

// Styles.
const (
	Paper  Style = "paper"  // small letters on white
	Screen Style = "screen" // on white or black, as the reader's screen is; PNG: on white
	Dark   Style = "dark"   // on black
)

// Styles are all of them.
var Styles = []Style{Paper, Screen, Dark}

// palette has a colour for each tone, as #rrggbb. The colours are those of the page (web/page/palette.ts), which a test
// compares.
type palette [tones]string

var light = palette{ground: "#ffffff", ink: "#1b1f24", quiet: "#57606a", rule: "#d5d9df", panel: "#f2f4f7",
	neutral: "#8a8f98", hue0: "#6b87f9", hue0 + 1: "#c10000", hue0 + 2: "#e76406", hue0 + 3: "#0f6d5c",
	hue0 + 4: "#38385d", hue0 + 5: "#ac8e76", hue0 + 6: "#4b00f3", hue0 + 7: "#7c0927"}

var night = palette{ground: "#14171c", ink: "#e6e9ee", quiet: "#a3abb6", rule: "#333a44", panel: "#1d2129",
	neutral: "#868c96", hue0: "#778eff", hue0 + 1: "#f40070", hue0 + 2: "#ffaf54", hue0 + 3: "#6a51ce",
	hue0 + 4: "#ddd0bb", hue0 + 5: "#14795f", hue0 + 6: "#86d9ff", hue0 + 7: "#6c7004"}

// fixed returns the colours of a style that has one ground.
func (s Style) fixed() *palette {
	if s == Dark {
		return &night
	}
	return &light
}

// rgb returns a tone, mixed with the ground.
func (p *palette) rgb(f fill) color.RGBA {
	of := func(hex string) (c [3]float64) {
		n, err := strconv.ParseUint(hex[1:], 16, 32)
		if err != nil {
			panic("plot: a colour of ours is " + hex)
		}
		return [3]float64{float64(n >> 16 & 255), float64(n >> 8 & 255), float64(n & 255)}
	}
	a, b := of(p[f.tone]), of(p[ground])
	mix := func(i int) uint8 { return uint8(a[i]*f.part + b[i]*(1-f.part) + .5) }
	return color.RGBA{mix(0), mix(1), mix(2), 255}
}
