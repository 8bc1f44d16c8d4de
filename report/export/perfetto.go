package export

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/trainyard/trainyard/metrics/timeline"
	"github.com/trainyard/trainyard/sched"
)

// MostSlices is how many slices a trace has with a track for each GPU. Above that it has tracks for nodes.
const MostSlices = 2_000_000

// Numbers of fields of Perfetto's messages, and of types of events.
const (
	tracePacket = 1

	packetTime, packetSequence, packetEvent, packetTrack = 8, 10, 11, 60

	trackUUID, trackName, trackParent, trackCounter = 1, 2, 5, 8

	eventNote, eventType, eventTrack, eventCategory, eventName, eventFlow = 4, 9, 11, 22, 23, 47
	eventDouble                                                           = 44

	noteInt, noteText, noteName = 4, 6, 10

	sliceBegin, sliceEnd, counterValue = 1, 2, 4
)

// proto is a message under construction.
type proto []byte

func (p proto) number(field int, n uint64) proto {
	return binary.AppendUvarint(binary.AppendUvarint(p, uint64(field)<<3), n)
}

func (p proto) bytes(field int, b []byte) proto {
	p = binary.AppendUvarint(binary.AppendUvarint(p, uint64(field)<<3|2), uint64(len(b)))
	return append(p, b...)
}

func (p proto) text(field int, s string) proto { return p.bytes(field, []byte(s)) }

func (p proto) fixed(field int, n uint64) proto {
	return binary.LittleEndian.AppendUint64(binary.AppendUvarint(p, uint64(field)<<3|1), n)
}

// perfetto writes packets. Its buffers are used again for each.
type perfetto struct {
	w            *bufio.Writer
	t            *timeline.Timeline
	end          sched.Time
	last         []int32 // by job: its last attempt
	event, note  proto
	packet, line proto
	name         []byte
	err          error
}

// Perfetto writes a run as a trace of TrackEvents: below each node a track for each GPU, and one more for each tenant
// that shares it, with a slice for each attempt and for what it did meanwhile; counters; flows from attempt to attempt
// of a job. Times are from the origin of the run. Names are text, and nothing else.
func Perfetto(w io.Writer, t *timeline.Timeline) error {
	p := &perfetto{w: bufio.NewWriterSize(w, 1<<16), t: t, end: t.Losses().To}
	p.last = make([]int32, len(t.Jobs))
	slicesOf := 0
	for i := range t.Attempts {
		p.last[t.Attempts[i].Job] = int32(i)
		slicesOf += t.Attempts[i].Width()
	}
	byNode := slicesOf > MostSlices
	for n := range t.Nodes {
		p.track(nodeTrack(n), 0, t.Nodes[n].Name, false)
	}
	for _, r := range p.rows(byNode) {
		p.lanes(r)
	}
	p.counters()
	if p.err != nil {
		return p.err
	}
	return p.w.Flush()
}

// Numbers of tracks: those of nodes, of counters, and of lanes of GPUs.
func nodeTrack(n int) uint64    { return 1<<20 + uint64(n) }
func counterTrack(n int) uint64 { return 1<<40 + uint64(n) }

func laneTrack(row, lane int) uint64 { return 1<<44 + uint64(row)<<16 + uint64(lane) }

// row is a GPU, or a node, and the attempts on it, the earliest first.
type row struct {
	number, node int
	name         string
	attempts     []int32
}

// rows returns the GPUs, or the nodes, with their attempts.
func (p *perfetto) rows(byNode bool) (list []row) {
	at := map[int]int{} // by number
	for n := range p.t.Nodes {
		node := &p.t.Nodes[n]
		if byNode {
			at[n] = len(list)
			list = append(list, row{number: n, node: n, name: "jobs"})
			continue
		}
		for g := range node.GPUs {
			at[int(node.First)+g] = len(list)
			list = append(list, row{number: int(node.First) + g, node: n, name: fmt.Sprint("GPU ", g)})
		}
	}
	nodeOf := make(map[int]int)
	for n := range p.t.Nodes {
		for g := range p.t.Nodes[n].GPUs {
			nodeOf[int(p.t.Nodes[n].First)+g] = n
		}
	}
	for i := range p.t.Attempts {
		for _, run := range p.t.Attempts[i].GPUs {
			for g := int(run.First); g < int(run.First)+int(run.Count); g++ {
				key := g
				if byNode {
					key = nodeOf[g]
				}
				r := &list[at[key]]
				if n := len(r.attempts); n == 0 || r.attempts[n-1] != int32(i) {
					r.attempts = append(r.attempts, int32(i))
				}
			}
		}
	}
	return list
}

// over returns when an attempt freed its GPUs, as far as the run goes.
func (p *perfetto) over(a *timeline.Attempt) sched.Time {
	if a.Ended == sched.None {
		return max(p.end, a.Ordered)
	}
	return a.Ended
}

// lanes writes the attempts of a row: slices of a track must nest, so attempts that overlap lie in lanes of their own.
func (p *perfetto) lanes(r row) {
	slices.SortStableFunc(r.attempts, func(a, b int32) int {
		return cmp.Compare(p.t.Attempts[a].Ordered, p.t.Attempts[b].Ordered)
	})
	var free []sched.Time // by lane: from when on it is
	for _, i := range r.attempts {
		a := &p.t.Attempts[i]
		lane := slices.IndexFunc(free, func(from sched.Time) bool { return from <= a.Ordered })
		if lane < 0 {
			lane = len(free)
			free = append(free, 0)
			p.track(laneTrack(r.number, lane), nodeTrack(r.node), r.name, false)
		}
		free[lane] = p.over(a)
		p.attempt(laneTrack(r.number, lane), i)
	}
}

// attempt writes the slice of an attempt, and in it what it did.
func (p *perfetto) attempt(track uint64, i int32) {
	a := &p.t.Attempts[i]
	j := &p.t.Jobs[a.Job]
	end := p.over(a)
	stop := end
	if a.Stopped != sched.None {
		stop = min(a.Stopped, end)
	}
	work := stop
	if a.Work != sched.None {
		work = min(max(a.Work, a.Ordered), stop)
	}
	kept := stop
	if a.Kept != sched.None {
		kept = min(max(a.Kept, work), stop)
	}
	p.name = strconv.AppendInt(append(append(p.name[:0], j.Name...), " #"...), int64(a.Job), 10)
	e := p.begin(track).bytes(eventName, p.name)
	if j.User != "" {
		e = e.text(eventCategory, j.User)
	}
	e = p.noted(e, "job", int64(a.Job), "")
	e = p.noted(e, "attempt", int64(a.Number), "")
	e = p.noted(e, "GPUs", int64(a.Width()), "")
	e = p.noted(e, "reason", 0, a.Reason.Code.String())
	e = p.noted(e, "outcome", 0, cmp.Or(a.Outcome.String(), "under way"))
	p.put(a.Ordered, e.fixed(eventFlow, uint64(a.Job)+1))
	for _, part := range []struct {
		name     string
		from, to sched.Time
	}{{"coming up", a.Ordered, work}, {"work", work, kept}, {"redone", kept, stop}, {"stopping", stop, end}} {
		if part.to > part.from {
			p.put(part.from, p.begin(track).text(eventName, part.name))
			p.put(part.to, p.ended(track))
		}
	}
	p.put(end, p.ended(track))
}

// begin starts an event that starts a slice, whose name is to follow.
func (p *perfetto) begin(track uint64) proto {
	return p.event[:0].number(eventType, sliceBegin).number(eventTrack, track)
}

func (p *perfetto) ended(track uint64) proto {
	return p.event[:0].number(eventType, sliceEnd).number(eventTrack, track)
}

// noted adds a note to an event: a text unless that is "", else a number.
func (p *perfetto) noted(e proto, name string, n int64, s string) proto {
	p.note = p.note[:0].text(noteName, name)
	if s != "" {
		p.note = p.note.text(noteText, s)
	} else {
		p.note = p.note.number(noteInt, uint64(n))
	}
	return e.bytes(eventNote, p.note)
}

// put writes an event at a time.
func (p *perfetto) put(at sched.Time, e proto) {
	p.event = e
	p.send(p.packet[:0].number(packetTime, uint64(max(at, 0))).number(packetSequence, 1).bytes(packetEvent, e))
}

// track describes a track; parent 0 = none.
func (p *perfetto) track(uuid, parent uint64, name string, counter bool) {
	d := proto{}.number(trackUUID, uuid).text(trackName, name)
	if parent != 0 {
		d = d.number(trackParent, parent)
	}
	if counter {
		d = d.bytes(trackCounter, nil)
	}
	p.send(p.packet[:0].number(packetSequence, 1).bytes(packetTrack, d))
}

func (p *perfetto) send(packet proto) {
	p.packet = packet
	p.line = p.line[:0].bytes(tracePacket, packet)
	if p.err == nil {
		_, p.err = p.w.Write(p.line)
	}
}

// counters writes what the cluster did over time.
func (p *perfetto) counters() {
	s := p.t.Series()
	for n, c := range []struct {
		name string
		list []float64
	}{{"GPUs there", s.GPUs}, {"GPUs held", s.Held}, {"jobs waiting", s.Queue}, {"GPUs asked for", s.Asked},
		{"watts", s.Watts}} {
		if len(c.list) == 0 {
			continue
		}
		track := counterTrack(n)
		p.track(track, 0, c.name, true)
		for i, x := range c.list {
			e := p.event[:0].number(eventType, counterValue).number(eventTrack, track)
			p.put(s.From.Add(time.Duration(i)*s.Width), e.fixed(eventDouble, math.Float64bits(x)))
		}
	}
}
