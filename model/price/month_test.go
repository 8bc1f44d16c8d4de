package price

import (
	"fmt"
	"math"
	"math/rand"
	"testing"
	"time"
)

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func unix(t *testing.T, z *time.Location, text string) int64 {
	t.Helper()
	at, err := time.ParseInLocation("2006-01-02 15:04", text, z)
	if err != nil {
		t.Fatal(err)
	}
	return at.Unix()
}

func month(t *testing.T, rule MonthRule, now int64) *Month {
	t.Helper()
	m, err := NewMonth(rule, now)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Ensure that months start at midnight where the budget is agreed on, in summer and winter, and that the first one has
// its share.
func TestMonthZone(t *testing.T) {
	z := zone(t, "Europe/Berlin")
	// 743 hours: the clock goes forward
	m := month(t, MonthRule{Budget: 743, Carry: 1e9, Zone: z}, unix(t, z, "2026-03-01 00:00"))
	check(t, "rate per hour", m.Rate()*3600, 1, 1e-12)
	if m.End() != unix(t, z, "2026-04-01 00:00") {
		t.Errorf("ends at %d", m.End())
	}
	m.Spend(unix(t, z, "2026-03-31 23:59"), 700)
	check(t, "spent", m.Spent(), 700, 1e-12)
	m.Spend(unix(t, z, "2026-04-01 00:00"), 0)
	check(t, "allowance", m.Allowance(), 743+43, 1e-12)
	m = month(t, MonthRule{Budget: 310, Zone: z}, unix(t, z, "2026-01-22 00:00"))
	check(t, "allowance of ten days", m.Allowance(), 100, 1e-12)
}

// Ensure that what is left goes over as far as agreed, that overspending always does, and that a month used up stops
// until the next.
func TestMonthCarry(t *testing.T) {
	z := time.UTC
	m := month(t, MonthRule{Budget: 100, Carry: 10, Zone: z}, unix(t, z, "2026-01-01 00:00"))
	m.Spend(unix(t, z, "2026-02-01 00:00"), 50)
	check(t, "allowance", m.Allowance(), 110, 1e-12)
	m.Spend(unix(t, z, "2026-02-10 00:00"), 130)
	if !m.Stopped() || m.Rate() != 0 {
		t.Errorf("not stopped, rate %v", m.Rate())
	}
	m.Spend(unix(t, z, "2026-03-01 00:00"), 0)
	check(t, "allowance", m.Allowance(), 80, 1e-12)
	if m.Stopped() {
		t.Error("stopped in the next month")
	}
	// A call that comes months late spreads what was spent.
	m.Spend(unix(t, z, "2026-03-01 00:00")+2*31*86400, 62)
	check(t, "spent of 62 in the last days", m.Spent(), 62./(62*86400)*86400*(62-31-30), 1e-9)
	check(t, "forecast", m.Forecast(0), m.Spent(), 0)
}

// Ensure that a zone whose clocks skip the first midnight of a month neither stops nor repeats a month.
func TestMonthWithoutMidnight(t *testing.T) {
	z := zone(t, "America/Asuncion") // 1 October 2023, clocks went from 0:00 to 1:00
	m := month(t, MonthRule{Budget: 1, Zone: z}, unix(t, z, "2023-09-30 12:00"))
	end := m.End()
	m.Spend(end-1, 0)
	for range 3 {
		m.Spend(m.End(), 0)
	}
	if m.End() != unix(t, z, "2024-01-01 00:00") {
		t.Errorf("ends at %v", time.Unix(m.End(), 0).In(z))
	}
}

// Ensure that a state saved and loaded goes on as if nothing had happened.
func TestMonthSaves(t *testing.T) {
	z := zone(t, "America/New_York")
	rng := rand.New(rand.NewSource(1))
	now := unix(t, z, "2025-10-17 08:00")
	rule := MonthRule{Budget: 1000, Carry: 200, Zone: z}
	m, twin := month(t, rule, now), month(t, rule, now)
	for range 300 {
		now += rng.Int63n(5 * 86400)
		amount := 40 * rng.Float64()
		m.Spend(now, amount)
		twin.Spend(now, amount)
		next := month(t, rule, 0)
		if err := next.Load(m.Save(nil)); err != nil {
			t.Fatal(err)
		}
		if m = next; *m != *twin || m.Rate() != twin.Rate() {
			t.Fatalf("%+v, want %+v", m, twin)
		}
	}
	for _, b := range [][]byte{nil, {1}, append(m.Save(nil), 0), append([]byte{2}, m.Save(nil)[1:]...),
		append([]byte{1}, make([]byte, 23)...)} {
		if err := m.Load(b); err == nil {
			t.Errorf("%v loaded", b)
		}
	}
}

func TestMonthErrors(t *testing.T) {
	for _, c := range []struct {
		rule MonthRule
		now  int64
		want string
	}{
		{MonthRule{Zone: time.UTC}, 0, "budget 0, want > 0"},
		{MonthRule{Budget: math.NaN(), Zone: time.UTC}, 0, "budget NaN, want > 0"},
		{MonthRule{Budget: 1, Carry: -1, Zone: time.UTC}, 0, "carry -1, want >= 0"},
		{MonthRule{Budget: 1}, 0, "no time zone, want one"},
		{MonthRule{Budget: 1, Zone: time.UTC}, math.MaxInt64, "time 9223372036854775807, want seconds since 1970"},
	} {
		if _, err := NewMonth(c.rule, c.now); fmt.Sprint(err) != "price: month: "+c.want {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
}

// Ensure that a step of the price is what its formula says, and is bounded.
func TestSteer(t *testing.T) {
	check(t, "on target", Steer(3, 0.5, 7, 7), 3, 0)
	check(t, "law", Steer(3, 0.5, 8, 10), 3*math.Exp(-0.1), 1e-15)
	check(t, "bounded", Steer(3, 1, 1e9, 1), 6, 1e-15)
	check(t, "nothing left", Steer(3, 1, 0, 0), 6, 0)
}
