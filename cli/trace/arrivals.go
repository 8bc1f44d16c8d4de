package trace

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/trace"
)

// arrivals draws when jobs are submitted: in the course of the trace, by hour of the day, by day of the week. It is
// empty if all come at once.
func (d *description) arrivals() string {
	a := &d.sum.Arrivals
	if d.sum.Span <= 0 {
		return ""
	}
	var b strings.Builder
	plot := func(what, bars, text string) {
		fmt.Fprintf(&b, "%-8s  %s\n%10s%s\n", what, strings.TrimRight(bars, " "), "", text)
	}
	plot("arrivals", spark(a.Course[:], 1),
		"from the first submission to the last, "+term.ShortTime(d.sum.Span.Seconds()))
	hours := extremes(a.Hours[:], func(i int) string { return fmt.Sprintf("%02d h", i) })
	if !a.Clock {
		plot("by hour", spark(a.Hours[:], 2), "from time 0 (clock unknown): "+hours)
		return b.String()
	}
	plot("by hour", spark(a.Hours[:], 2), "of the day, 00 to 23; "+hours)
	days := []string{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"}
	plot("by day", spark(a.Weekdays[:], 4), strings.Join(days, " ")+"; "+extremes(a.Weekdays[:],
		func(i int) string { return days[i] }))
	return b.String()
}

// spark draws counts as bars from nothing to the largest, each so many columns wide.
func spark(counts []int, columns int) string {
	bars := []rune(" ▁▂▃▄▅▆▇█")
	most := 1
	for _, n := range counts {
		most = max(most, n)
	}
	var b strings.Builder
	for _, n := range counts {
		bar := (n*(len(bars)-1) + most - 1) / most // what is more than nothing is seen
		b.WriteString(strings.Repeat(string(bars[bar]), columns))
	}
	return b.String()
}

// extremes names the largest and the smallest count, as shares of the mean.
func extremes(counts []int, name func(int) string) string {
	most, least, sum := 0, 0, 0
	for i, n := range counts {
		if sum += n; n > counts[most] {
			most = i
		}
		if n < counts[least] {
			least = i
		}
	}
	of := func(i int) string {
		return name(i) + " " + strconv.FormatFloat(float64(counts[i]*len(counts))/float64(max(sum, 1)), 'f', 2, 64)
	}
	return of(most) + ", " + of(least) + " of the mean"
}

// shareTable lists what jobs make up by a word, at most twelve of them; empty if no job has one.
func shareTable(what string, list []trace.Share, width int) string {
	const most = 12
	if len(list) == 0 {
		return ""
	}
	t := &term.Table{}
	t.Add(what, "jobs", "of jobs", "of GPU time")
	for i, s := range list {
		if i == most && len(list) > most+1 {
			rest := trace.Share{Name: strconv.Itoa(len(list)-i) + " more"}
			for _, s := range list[i:] {
				rest.Jobs, rest.JobShare, rest.TimeShare = rest.Jobs+s.Jobs, rest.JobShare+s.JobShare,
					rest.TimeShare+s.TimeShare
			}
			t.Add(rest.Name, strconv.Itoa(rest.Jobs), share(rest.JobShare), share(rest.TimeShare))
			break
		}
		if s.Name == "" {
			s.Name = "(unknown)"
		}
		t.Add(s.Name, strconv.Itoa(s.Jobs), share(s.JobShare), share(s.TimeShare))
	}
	t.Cut(0, width)
	return t.Text(width)
}

// typeLoad is the load that the jobs asking for one GPU type offer to the GPUs of that type.
type typeLoad struct {
	Type string  `json:"type"`
	Jobs int     `json:"jobs"`
	GPUs int     `json:"gpus"`         // of the type in the cluster
	Load float64 `json:"offered_load"` // 0 where there are none, or all jobs come at once
}

func (l typeLoad) text() string {
	if l.GPUs == 0 {
		return fmt.Sprintf("%s: %s, no such GPU in the cluster", l.Type, term.Counted(l.Jobs, "job"))
	}
	return fmt.Sprintf("%s: %s, %.3g times what its %s can do", l.Type, term.Counted(l.Jobs, "job"), l.Load,
		term.Counted(l.GPUs, "GPU"))
}

// loads returns the load by GPU type of the jobs that name one.
func (d *description) loads() []typeLoad {
	var list []typeLoad
	for _, s := range d.sum.Types {
		if s.Name == "" {
			continue
		}
		l := typeLoad{Type: s.Name, Jobs: s.Jobs, GPUs: gpusOfType(d.cluster, s.Name)}
		if l.GPUs > 0 && d.sum.Span > 0 {
			l.Load = float64(s.GPUTime) / d.sum.Span.Seconds() / float64(l.GPUs)
		}
		list = append(list, l)
	}
	return list
}

// gpusOfType counts the GPUs of one type. A cluster that names no types has them all.
func gpusOfType(c *cluster.Cluster, name string) int {
	n := 0
	for i := range c.Nodes {
		if typ := c.Types[c.Nodes[i].Type]; typ == name || len(c.Types) == 1 && typ == "gpu" {
			n += c.Nodes[i].GPUs
		}
	}
	return n
}
