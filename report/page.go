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

// Write writes the report as one HTML file, and returns what it leaves out, in words; "" = nothing. The same report
// gives the same bytes. Where the data would have more bytes than Limit, the file keeps the 2,000 jobs that had most
// GPU time or waited for most of it, with their attempts; of the others it has sums, and shares of GPU time by node and
// time.
func (r *Report) Write(w io.Writer) (left string, err error) {
	if r.Anonymous {
		r = r.nameless()
	}
	blocks, err := r.blocks()
	if err == nil && r.Limit > 0 && blocks.size() > r.Limit {
		if small := r.reduced(); small != nil {
			r = small
			blocks, err = r.blocks()
			left = r.kept.Says
		} else {
			left = fmt.Sprintf("The data has %.3g MB, more than the %.3g of --report-limit; "+
				"of %d jobs none is left out.", float64(blocks.size())/1e6, float64(r.Limit)/1e6, len(r.described()))
		}
	}
	if err != nil {
		return "", fmt.Errorf("report: %w", err)
	}
	p := &page{w: w}
	p.print("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
		"<meta http-equiv=\"Content-Security-Policy\" content=\"", Policy(), "\">\n",
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
		"<link rel=\"icon\" href=\"data:,\">\n<title>Trainyard: ", html.EscapeString(r.title()), "</title>\n",
		"<style>", web.Style(), "</style>\n</head>\n<body>\n<div id=\"page\">\n", r.plain(), "</div>\n")
	p.block("head", "application/json", blocks.head)
	p.block("jobs", "text/plain", blocks.jobs)
	for i, packed := range blocks.systems {
		p.block("system-"+strconv.Itoa(i), "text/plain", packed)
	}
	p.print("<script>", web.Script(), "</script>\n</body>\n</html>\n")
	return left, p.err
}

// blocks are the data of a file.
type blocks struct {
	head, jobs []byte
	systems    [][]byte
}

// size returns how many bytes they have.
func (b *blocks) size() int64 {
	n := int64(len(b.head) + len(b.jobs))
	for _, s := range b.systems {
		n += int64(len(s))
	}
	return n
}

// blocks packs what the file has.
func (r *Report) blocks() (*blocks, error) {
	u := r.unitOf()
	head, err := json.Marshal(r.head(u))
	if err != nil {
		return nil, err
	}
	b := &blocks{head: escaped(head)}
	if b.jobs, err = r.packJobs(u); err != nil {
		return nil, err
	}
	for i := range r.Systems {
		packed, bad := r.packSystem(&r.Systems[i], u)
		if bad != nil {
			return nil, bad
		}
		b.systems = append(b.systems, packed)
	}
	return b, nil
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
	if len(names) == 0 {
		for i := range r.Facts {
			return r.Facts[i].Text
		}
	}
	return strings.Join(names, ", ")
}
