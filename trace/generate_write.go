package trace

import (
	"bufio"
	"fmt"
	"io"
	"strconv"

	"github.com/trainyard/trainyard/sched"
)

// WriteCSV writes the jobs of All in Trainyard's own format as they are made. It panics with the text of Validate if g
// is wrong.
func (g Generator) WriteCSV(w io.Writer) error {
	s := newSource(g)
	s.begin()
	out := bufio.NewWriterSize(w, 64<<10)
	line := append(g.header(make([]byte, 0, 256)), '\n')
	var d draft
	for i := range g.Jobs {
		if _, err := out.Write(line); err != nil {
			return fmt.Errorf("trace: write: %w", err)
		}
		s.next(&d)
		line = append(s.row(line[:0], i, &d), '\n')
	}
	_, _ = out.Write(line) // an error sticks until Flush
	if err := out.Flush(); err != nil {
		return fmt.Errorf("trace: write: %w", err)
	}
	return nil
}

// OfferedLoad returns how many times what GPUs can do the jobs of All offer, as Summary.OfferedLoad does: near Load
// where there are many. It draws them once more. It panics with the text of Validate if g is wrong.
func (g Generator) OfferedLoad() float64 {
	s := newSource(g)
	s.begin()
	var sum Summary
	var d draft
	for i := range g.Jobs {
		s.next(&d)
		if i == 0 {
			sum.First = sched.Time(d.submit)
		}
		sum.Last = sched.Time(d.submit)
		sum.GPUTime += sched.GPUSeconds(float64(s.mix[d.width].GPUs) * d.duration.Seconds())
	}
	sum.Span = sum.Last.Sub(sum.First)
	return sum.OfferedLoad(g.GPUs)
}

// header appends the columns that the jobs have.
func (g Generator) header(b []byte) []byte {
	b = append(b, "job_id,submit_s,num_gpus,duration_s"...)
	for _, c := range []struct {
		name string
		used bool
	}{{"user", g.Users > 0}, {"group", len(g.Groups) > 0}, {"model", len(g.Models) > 0}, {"state", len(g.States) > 0}} {
		if c.used {
			b = append(append(b, ','), c.name...)
		}
	}
	return b
}

// row appends job i.
func (s *source) row(b []byte, i int, d *draft) []byte {
	b = append(strconv.AppendInt(b, int64(i), 10), ',')
	b = append(sched.AppendSeconds(b, d.submit), ',')
	b = append(strconv.AppendInt(b, int64(s.mix[d.width].GPUs), 10), ',')
	b = sched.AppendSeconds(b, d.duration)
	if s.g.Users > 0 {
		b = append(append(b, ','), s.names[d.user]...)
	}
	if len(s.g.Groups) > 0 {
		b = appendWord(append(b, ','), s.g.Groups[d.group].Name)
	}
	if len(s.g.Models) > 0 {
		b = appendWord(append(b, ','), s.g.Models[d.model])
	}
	if len(s.g.States) > 0 {
		b = appendWord(append(b, ','), s.g.States[d.state].Name)
	}
	return b
}
