package price

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"
)

// Month watches a budget by calendar month. Times are seconds since 1970 UTC; months start at midnight in the zone it
// was made with, whatever its daylight saving. It is a state machine: the same calls give the same answers, also across
// Save and Load.
//
// What is left at the end of a month, or was overspent, goes over into the next as far as Carry says. Once a month's
// allowance is used up, Stopped says so until the next month starts: no more may be rented.
type Month struct {
	rule  MonthRule
	end   int64   // of the current month
	allow float64 // what this month may spend in all
	spent float64 // this month
	last  int64   // time of the last call
}

// MonthRule is what someone agreed to.
type MonthRule struct {
	Budget float64 // for each whole month, > 0
	// at most this much of what was left goes over into the next month, >= 0; overspending always does, all of it
	Carry float64
	Zone  *time.Location // in which months start
}

// NewMonth starts watching at now. The first month has its share of the budget from now to its end.
func NewMonth(rule MonthRule, now int64) (*Month, error) {
	switch {
	case !(rule.Budget > 0) || math.IsInf(rule.Budget, 1):
		return nil, fmt.Errorf("price: month: budget %v, want > 0", rule.Budget)
	case !(rule.Carry >= 0):
		return nil, fmt.Errorf("price: month: carry %v, want >= 0", rule.Carry)
	case rule.Zone == nil:
		return nil, errors.New("price: month: no time zone, want one")
	case now < -maxUnix || now > maxUnix:
		return nil, fmt.Errorf("price: month: time %d, want seconds since 1970", now)
	}
	m := &Month{rule: rule, last: now}
	begin, end := m.around(now)
	m.end, m.allow = end, rule.Budget*float64(end-now)/float64(end-begin)
	return m, nil
}

// maxUnix keeps calendars sane: the year is of four digits or so.
const maxUnix = 200_000_000_000

// around returns when the month of a time starts and ends.
func (m *Month) around(now int64) (begin, end int64) {
	t := time.Unix(now, 0).In(m.rule.Zone)
	first := func(month time.Month) int64 {
		return time.Date(t.Year(), month, 1, 0, 0, 0, 0, m.rule.Zone).Unix()
	}
	begin, end = first(t.Month()), first(t.Month()+1)
	if end <= now { // midnight does not exist that day, and the clock shows the evening before
		begin, end = end, first(t.Month()+2)
	}
	return begin, end
}

// Spend takes in that amount >= 0 was spent from the last call until now, evenly. It panics if time runs backwards.
func (m *Month) Spend(now int64, amount float64) {
	if now < m.last || now > maxUnix || !(amount >= 0) {
		panic(fmt.Sprintf("price: month: %v spent from %d to %d", amount, m.last, now))
	}
	for now >= m.end {
		part := 0.0
		if now > m.last {
			part = amount * float64(m.end-m.last) / float64(now-m.last)
		}
		m.spent += part
		amount -= part
		m.last = m.end
		m.turn()
	}
	m.spent += amount
	m.last = now
}

// turn starts the next month.
func (m *Month) turn() {
	left := m.allow - m.spent
	_, m.end = m.around(m.end)
	m.allow, m.spent = m.rule.Budget+min(left, m.rule.Carry), 0
}

// Allowance returns what this month may spend in all, and Spent what it has.
func (m *Month) Allowance() float64 { return m.allow }

// Spent returns what was spent this month.
func (m *Month) Spent() float64 { return m.spent }

// End returns when this month ends.
func (m *Month) End() int64 { return m.end }

// Stopped reports whether the month's allowance is used up.
func (m *Month) Stopped() bool { return m.spent >= m.allow }

// Rate returns what may be spent per second from now to the end of the month, evenly: the target of Steer. 0 = stopped.
func (m *Month) Rate() float64 { return max(0, m.allow-m.spent) / float64(m.end-m.last) }

// Forecast returns what the month will have cost if spending goes on at so much per second.
func (m *Month) Forecast(perSecond float64) float64 {
	return m.spent + perSecond*float64(m.end-m.last)
}

// monthFormat is the first byte that Save writes, monthBytes the length of it all.
const (
	monthFormat = 1
	monthBytes  = 1 + 3*8
)

// Save appends the state to b: format, allowance, spent and last time. The rule is not part of it.
func (m *Month) Save(b []byte) []byte {
	b = append(b, monthFormat)
	for _, x := range [...]uint64{math.Float64bits(m.allow), math.Float64bits(m.spent), uint64(m.last)} {
		b = binary.LittleEndian.AppendUint64(b, x)
	}
	return b
}

// Load replaces the state by one that Save wrote under the same rule. On error the state stays as it was.
func (m *Month) Load(b []byte) error {
	if len(b) != monthBytes || b[0] != monthFormat {
		return fmt.Errorf("price: month: load: %d bytes, want %d that start with format %d", len(b), monthBytes,
			monthFormat)
	}
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(b[1+8*i:]) }
	allow, spent, last := math.Float64frombits(word(0)), math.Float64frombits(word(1)), int64(word(2))
	if math.IsNaN(allow) || math.IsInf(allow, 0) || !(spent >= 0) || math.IsInf(spent, 1) || last < -maxUnix ||
		last > maxUnix {
		return errors.New("price: month: load: a state that no spending leads to")
	}
	m.allow, m.spent, m.last = allow, spent, last
	_, m.end = m.around(last)
	return nil
}
