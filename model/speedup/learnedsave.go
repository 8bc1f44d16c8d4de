package speedup

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/trainyard/trainyard/sched"
)

// learnedFormat is the first byte that SaveRest writes.
const learnedFormat = 4

// Format names what is saved.
func (*Learned) Format() string { return "learned-speedup/4" }

// SaveJob appends what job j last reported; nothing if it does not run.
func (l *Learned) SaveJob(j sched.JobID, b []byte) []byte {
	if int(j) >= len(l.open) || l.open[j].at.gpus == 0 {
		return b
	}
	s := &l.open[j]
	for _, x := range []int32{s.at.gpus, s.at.nodes, s.at.batch} {
		b = binary.AppendUvarint(b, uint64(x))
	}
	return appendFloat(appendFloat(b, s.rate), s.from)
}

// LoadJob takes what SaveJob wrote.
func (l *Learned) LoadJob(j sched.JobID, b []byte) error {
	if len(b) == 0 {
		return nil
	}
	d := decoder{b: b}
	s := spell{at: d.cell(), rate: d.float(minRate, maxRate), from: d.float(0, MaxDuration.Seconds())}
	if d.bad || len(d.b) > 0 {
		return fmt.Errorf("speedup: load: %d bytes about job %d that are no rate", len(b), j)
	}
	for int(j) >= len(l.open) {
		l.open = append(l.open, spell{})
	}
	l.open[j] = s
	return nil
}

// SaveRest appends the pools in order of application, width and batch range, each with its cells in order, and those
// with their stages.
func (l *Learned) SaveRest(b []byte) []byte {
	b = append(b, learnedFormat)
	b = binary.AppendUvarint(b, uint64(len(l.pools)))
	for _, key := range slices.SortedFunc(maps.Keys(l.pools), poolKey.compare) {
		p := l.pools[key]
		b = binary.AppendUvarint(b, uint64(len(key.model)))
		b = append(b, key.model...)
		for _, x := range []int32{key.want, key.batch.Min, key.batch.Max, key.batch.PerGPU} {
			b = binary.AppendUvarint(b, uint64(uint32(x)))
		}
		b = binary.AppendUvarint(b, uint64(p.finished))
		b = appendFloat(b, p.work)
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(p.reports)), uint64(p.fitted))
		b = binary.AppendUvarint(b, uint64(p.usual))
		for _, x := range p.model.params() {
			b = appendFloat(b, x)
		}
		b = binary.AppendUvarint(b, uint64(len(p.cells)))
		for _, at := range slices.SortedFunc(maps.Keys(p.cells), cell.compare) {
			for _, x := range []int32{at.gpus, at.nodes, at.batch} {
				b = binary.AppendUvarint(b, uint64(x))
			}
			b = binary.AppendUvarint(b, uint64(len(p.cells[at])))
			for _, r := range p.cells[at] {
				b = appendFloat(appendFloat(appendFloat(b, r.work), r.seconds), r.reported)
			}
		}
	}
	return b
}

func (k poolKey) compare(o poolKey) int {
	return cmp.Or(cmp.Compare(k.model, o.model), cmp.Compare(k.want, o.want), cmp.Compare(k.batch.Min, o.batch.Min),
		cmp.Compare(k.batch.Max, o.batch.Max), cmp.Compare(k.batch.PerGPU, o.batch.PerGPU))
}

func appendFloat(b []byte, x float64) []byte {
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
}

// LoadRest replaces what is known by what SaveRest wrote. On error it stays as it was.
func (l *Learned) LoadRest(b []byte) error {
	if len(b) == 0 || b[0] != learnedFormat {
		return fmt.Errorf("speedup: load: %d bytes that do not start with format %d", len(b), learnedFormat)
	}
	d := decoder{b: b[1:]}
	pools := make(map[poolKey]*pool)
	for range d.count(maxPools) {
		key, p := d.pool()
		if d.bad {
			break
		}
		pools[key] = p
	}
	if d.bad || len(d.b) > 0 {
		return errors.New("speedup: load: rates that are cut short, out of range or followed by more")
	}
	l.pools = pools
	return nil
}

// decoder reads what SaveRest wrote. Once bad, it returns zeros.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) count(most uint64) uint64 {
	x, n := binary.Uvarint(d.b)
	if d.bad = d.bad || n <= 0 || x > most; d.bad {
		return 0
	}
	d.b = d.b[n:]
	return x
}

// float reads a number in least..most.
func (d *decoder) float(least, most float64) float64 {
	if d.bad = d.bad || len(d.b) < 8; d.bad {
		return 0
	}
	x := math.Float64frombits(binary.LittleEndian.Uint64(d.b))
	d.b = d.b[8:]
	if d.bad = !(x >= least && x <= most); d.bad {
		return 0
	}
	return x
}

func (d *decoder) pool() (poolKey, *pool) {
	n := d.count(uint64(len(d.b)))
	if d.bad || n > uint64(len(d.b)) {
		d.bad = true
		return poolKey{}, nil
	}
	key := poolKey{model: string(d.b[:n])}
	d.b = d.b[n:]
	key.want = int32(d.count(math.MaxInt32))
	key.batch = sched.BatchRange{Min: int32(d.count(math.MaxInt32)), Max: int32(d.count(math.MaxInt32)),
		PerGPU: int32(d.count(math.MaxInt32))}
	p := &pool{finished: int64(d.count(math.MaxInt64)), work: d.float(0, MaxDuration.Seconds()),
		cells: make(map[cell]rates)}
	p.reports, p.fitted = int64(d.count(math.MaxInt64/2)), int64(d.count(math.MaxInt64/2))
	p.usual = int32(d.count(math.MaxInt32))
	var model params
	for i := range model {
		model[i] = d.float(0, math.MaxFloat64)
	}
	p.model = model.overlap()
	d.rates(p)
	d.bad = d.bad || key.model == "" || key.want < 1 || p.finished > 0 && p.work <= 0 || p.fitted > p.reports
	return key, p
}

// rates reads the cells of p, one of which must have the usual batch size, if there is one.
func (d *decoder) rates(p *pool) {
	seen := p.usual == 0
	for range d.count(maxCells) {
		at := d.cell()
		seen = seen || at.batch == p.usual
		for range d.count(uint64(len(stageEnds))) {
			r := rate{work: d.float(0, math.MaxFloat64), seconds: d.float(0, math.MaxFloat64),
				reported: d.float(0, 2*maxRate)}
			d.bad = d.bad || (r.seconds > 0) != (r.reported > 0) || (r.seconds > 0) != (r.work > 0)
			p.cells[at] = append(p.cells[at], r)
		}
		if d.bad = d.bad || !(p.cells[at].mean() > 0); d.bad {
			return
		}
	}
	d.bad = d.bad || !seen
}

func (d *decoder) cell() cell {
	at := cell{int32(d.count(math.MaxInt32)), int32(d.count(math.MaxInt32)), int32(d.count(math.MaxInt32))}
	d.bad = d.bad || at.gpus < 1 || at.nodes < 1 || at.nodes > at.gpus
	return at
}
