package report

import (
	"encoding/json"
	"fmt"
	"html"
	"strconv"
	"strings"
)

// plain is what a browser shows that cannot show the page: a sentence that says so, and the headline figures.
func (r *Report) plain() string {
	var b strings.Builder
	b.WriteString("<main class=\"plain\">\n<h1>Trainyard</h1>\n<p>This page needs scripts, and a browser of 2023 or " +
		"later, to show its pictures. These are its headline figures.</p>\n")
	if len(r.Systems) > 0 {
		b.WriteString(r.headline())
	}
	for i := range r.Tables {
		b.WriteString(r.Tables[i].plain())
	}
	for _, doc := range []any{r.Plan, r.WhatIf} {
		if doc == nil {
			continue
		}
		if tables, err := Figures(doc); err == nil {
			for i := range tables {
				b.WriteString(tables[i].plain())
			}
		}
	}
	b.WriteString("</main>\n")
	return b.String()
}

func (r *Report) headline() string {
	var b strings.Builder
	b.WriteString("<table>\n<tr><th>system</th><th>jobs</th>" +
		"<th>finished</th><th>mean JCT, s</th><th>median JCT, s</th><th>p95 JCT, s</th><th>mean queue, s</th>" +
		"<th>preemptions</th></tr>\n")
	for i := range r.Systems {
		s := &r.Systems[i].Result
		fmt.Fprintf(&b, "<tr><td>%s</td><td>%d</td><td>%d</td><td>%.1f</td><td>%.1f</td><td>%.1f</td><td>%.1f</td>"+
			"<td>%d</td></tr>\n", html.EscapeString(r.Systems[i].Name), s.Jobs, s.Finished, s.AvgJCT, s.P50JCT,
			s.P95JCT, s.AvgQueue, s.Preemptions)
	}
	b.WriteString("</table>\n")
	return b.String()
}

// plain is a table without scripts.
func (t *Table) plain() string {
	var b strings.Builder
	fmt.Fprintf(&b, "<h2>%s</h2>\n<table>\n<tr>", html.EscapeString(t.Title))
	for _, h := range t.Head {
		fmt.Fprintf(&b, "<th>%s</th>", html.EscapeString(h))
	}
	b.WriteString("</tr>\n")
	for _, row := range t.Rows {
		b.WriteString("<tr>")
		for _, cell := range row {
			fmt.Fprintf(&b, "<td>%s</td>", html.EscapeString(cellText(cell)))
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString("</table>\n")
	return b.String()
}

// cellText says a cell in words.
func cellText(cell any) string {
	switch x := cell.(type) {
	case nil:
		return "-"
	case string:
		return x
	case bool:
		return strconv.FormatBool(x)
	case json.Number:
		return x.String()
	}
	return fmt.Sprint(cell)
}
