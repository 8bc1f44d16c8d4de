package web

import (
	"io"
	"net/http"
	"strings"
)

// Ways in which a live page comes by what identifies it.
const (
	ByLink  = "link"  // a key is exchanged for a link that holds once
	Looking = "look"  // the same, for who changes nothing
	ByToken = "token" // its reader types a token in
)

// LivePolicy is the Content-Security-Policy of a live page: it asks its own host alone.
const LivePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// document is the page; DATA is what identifies it by.
const document = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>Trainyard</title>
<link rel="stylesheet" href="/page.css">
</head>
<body>
<div id="page" data-live="DATA">
<main class="plain"><h1>Trainyard</h1><p>This page needs scripts, and a browser of 2023 or later.</p></main>
</div>
<script src="/page.js"></script>
</body>
</html>
`

// IsStatic reports whether a path is one of the files of a live page, which need no identity.
func IsStatic(path string) bool { return path == "/" || path == "/page.js" || path == "/page.css" }

// Protect sets the headers of all that a live page is made of, and of what it asks for.
func Protect(h http.Header) {
	h.Set("Content-Security-Policy", LivePolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// Serve answers a GET of a static path; by is a way to be identified.
func Serve(w http.ResponseWriter, path, by string) {
	Protect(w.Header())
	kind, text := "text/html; charset=utf-8", ""
	switch path {
	case "/page.js":
		kind, text = "text/javascript; charset=utf-8", script
	case "/page.css":
		kind, text = "text/css; charset=utf-8", style
	default:
		text = strings.Replace(document, "DATA", by, 1)
	}
	w.Header().Set("Content-Type", kind)
	_, _ = io.WriteString(w, text)
}
