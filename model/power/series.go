package power

import (
	"io"
	"sort"

	"github.com/trainyard/trainyard/internal/csvtable"
	"github.com/trainyard/trainyard/sched"
)

// Series is a quantity by time, such as the price of electricity or its carbon: a step function that takes a new value
// at each start and keeps the last for ever.
type Series struct {
	starts []sched.Time // rising, the first 0
	values []float64
	upTo   []float64 // integral up to each start, in value x seconds
}

// Columns of the values of a series.
const (
	PriceColumn  = "price"         // of a kWh, in the currency of all prices; may be negative
	CarbonColumn = "grams_per_kwh" // of CO2 equivalent
)

// ReadSeries reads a series: the columns start, in seconds since the origin of the run, and the column named, with
// rising starts from 0 on. Values below least are an error. Errors call the file by name.
func ReadSeries(r io.Reader, name, column string, least float64) (*Series, error) {
	t, err := csvtable.Open(r, "power", name)
	if err != nil {
		return nil, err
	}
	err = t.Only("start", column)
	if err != nil {
		return nil, err
	}
	s := &Series{}
	err = t.Each(func() error { return s.row(t, column, least) })
	if err != nil {
		return nil, err
	}
	if len(s.starts) == 0 {
		return nil, t.Fail("no rows, want one that starts at 0")
	}
	return s, nil
}

// row adds a row.
func (s *Series) row(t *csvtable.Table, column string, least float64) error {
	sec, err := t.Number("start", 0, maxTime)
	if err != nil {
		return err
	}
	value, err := t.Number(column, least, maxTime)
	if err != nil {
		return err
	}
	at, n := sched.Time(sched.Seconds(sec)), len(s.starts)
	switch {
	case n == 0 && at != 0:
		return t.Fail("start %s first, want 0: what holds before is not known", t.Raw("start"))
	case n > 0 && at <= s.starts[n-1]:
		return t.Fail("start %s after %v, want rising starts", t.Raw("start"), s.starts[n-1])
	}
	s.add(at, value)
	return nil
}

// ReadPrices reads a series of prices per kWh.
func ReadPrices(r io.Reader, name string) (*Series, error) {
	return ReadSeries(r, name, PriceColumn, -maxTime)
}

// ReadCarbon reads a series of grams of CO2 equivalent per kWh.
func ReadCarbon(r io.Reader, name string) (*Series, error) {
	return ReadSeries(r, name, CarbonColumn, 0)
}

func (s *Series) add(at sched.Time, value float64) {
	sum := 0.0
	if n := len(s.starts); n > 0 {
		sum = s.upTo[n-1] + float64(s.values[n-1]*at.Sub(s.starts[n-1]).Seconds())
	}
	s.starts, s.values, s.upTo = append(s.starts, at), append(s.values, value), append(s.upTo, sum)
}

// step returns which value holds at t; what is before the origin has the first.
func (s *Series) step(t sched.Time) int {
	return max(sort.Search(len(s.starts), func(i int) bool { return s.starts[i] > t })-1, 0)
}

// At returns the value at t.
func (s *Series) At(t sched.Time) float64 { return s.values[s.step(t)] }

// Next returns when the value changes next after t, Never if it does not.
func (s *Series) Next(t sched.Time) sched.Time {
	if i := sort.Search(len(s.starts), func(i int) bool { return s.starts[i] > t }); i < len(s.starts) {
		return s.starts[i]
	}
	return sched.Never
}

// Integral returns the integral from a to b in value x seconds; b is not before a.
func (s *Series) Integral(a, b sched.Time) float64 {
	i, j := s.step(a), s.step(b)
	if i == j {
		return s.values[i] * b.Sub(a).Seconds()
	}
	head := s.values[i] * s.starts[i+1].Sub(a).Seconds()
	return head + (s.upTo[j] - s.upTo[i+1]) + float64(s.values[j]*b.Sub(s.starts[j]).Seconds())
}

// joulesPerKWh is 3.6 MJ.
const joulesPerKWh = 3.6e6

// Of returns what the constant power w from a to b comes to: the price or the grams of its kWh.
func (s *Series) Of(w sched.Watts, a, b sched.Time) float64 {
	return float64(w) * s.Integral(a, b) / joulesPerKWh
}
