// Package web holds the page of Trainyard: what a report and a live view show. Its sources are in page; dist is what
// `make web` makes of them, and what a program embeds.
package web

import _ "embed"

var (
	//go:embed dist/page.js
	script string
	//go:embed dist/page.css
	style string
)

// Script returns the script of the page. It has no "</script" in it.
func Script() string { return script }

// Style returns the style sheet of the page. It has no "</style" in it.
func Style() string { return style }
