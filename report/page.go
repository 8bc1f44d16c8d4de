package report

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"strconv"
	"strings"

	"github.com/trainyard/trainyard/web"
)

// Write writes the report as one HTML file. The same report gives the same bytes.
func (r *Report) Write(w io.Writer) error {
	if r.Anonymous {
		r = r.nameless()
	}
	u := r.unitOf()
	head, err := json.Marshal(r.head(u))
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	p := &page{w: w}
	p.print("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
		"<meta http-equiv=\"Content-Security-Policy\" content=\"", Policy(), "\">\n",
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
		"<link rel=\"icon\" href=\"data:,\">\n<title>Trainyard: ", html.EscapeString(r.title()), "</title>\n",
		"<style>", web.Style(), "</style>\n</head>\n<body>\n<div id=\"page\">\n", r.plain(), "</div>\n")
	p.block("head", "application/json", escaped(head))
	jobs, err := r.packJobs(u)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	p.block("jobs", "text/plain", jobs)
	for i := range r.Systems {
		packed, bad := r.packSystem(&r.Systems[i], u)
		if bad != nil {
			return fmt.Errorf("report: %w", bad)
		}
		p.block("system-"+strconv.Itoa(i), "text/plain", packed)
	}
	p.print("<script>", web.Script(), "</script>\n</body>\n</html>\n")
	return p.err
}

// Policy is the Content-Security-Policy of a file: our script and our style, and nothing from anywhere.
func Policy() string {
	return "default-src 'none'; script-src '" + hashOf(web.Script()) + "'; style-src '" + hashOf(web.Style()) +
		"'; img-src data:; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// escaped has no end of a script, and no comment, in a block of JSON, whatever names are in it. json.Marshal escapes
// both already: this holds if it no longer did.
func escaped(block []byte) []byte {
	text := strings.ReplaceAll(string(block), "</", `<\/`)
	return []byte(strings.ReplaceAll(text, "<!--", `\u003c!--`))
}

// page writes; the first error sticks.
type page struct {
	w   io.Writer
	err error
}

func (p *page) print(parts ...string) {
	for _, s := range parts {
		if p.err == nil {
			_, p.err = io.WriteString(p.w, s)
		}
	}
}

// block writes a block of data, which no browser runs.
func (p *page) block(id, kind string, data []byte) {
	p.print("<script type=\"", kind, "\" id=\"", id, "\">", string(data), "</script>\n")
}

func (r *Report) title() string {
	names := make([]string, len(r.Systems))
	for i := range r.Systems {
		names[i] = r.Systems[i].Name
	}
	return strings.Join(names, ", ")
}

// plain is the headline table, for a browser that cannot show the page.
func (r *Report) plain() string {
	var b strings.Builder
	b.WriteString("<main class=\"plain\">\n<h1>Trainyard</h1>\n<p>This page needs scripts, and a browser of 2023 or " +
		"later, to show its pictures. These are its headline figures.</p>\n<table>\n<tr><th>system</th><th>jobs</th>" +
		"<th>finished</th><th>mean JCT, s</th><th>median JCT, s</th><th>p95 JCT, s</th><th>mean queue, s</th>" +
		"<th>preemptions</th></tr>\n")
	for i := range r.Systems {
		s := &r.Systems[i].Result
		fmt.Fprintf(&b, "<tr><td>%s</td><td>%d</td><td>%d</td><td>%.1f</td><td>%.1f</td><td>%.1f</td><td>%.1f</td>"+
			"<td>%d</td></tr>\n", html.EscapeString(r.Systems[i].Name), s.Jobs, s.Finished, s.AvgJCT, s.P50JCT,
			s.P95JCT, s.AvgQueue, s.Preemptions)
	}
	b.WriteString("</table>\n</main>\n")
	return b.String()
}
