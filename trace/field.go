package trace

import (
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// What was wanted of a value, for error messages.
const (
	wantTime     = "want a time from 0 to 100 years, such as 90 or 0.5"
	wantGPUs     = "want a whole number from 1 to 1000000"
	wantPriority = "want a whole number from -2147483648 to 2147483647"
	wantBatch    = "want a whole number from 1 to 2147483647"
	wantWord     = "want at most 4096 bytes of UTF-8 text without control characters"
	wantID       = "want a name: 1 to 4096 bytes of UTF-8 text without control characters"
	wantFlag     = "want 0 or 1"
)

// set stores the value s of a column in j and returns what was wanted if s is not it, else "".
func (p *parser) set(j *Job, m meaning, s string) (want string) {
	switch m {
	case jobID:
		j.Spec.Name = p.words.keep(s)
		return wish(s != "" && printable(s), wantID)
	case submit:
		t, ok := parseTime(s, p.unit)
		j.Spec.Submit = sched.Time(t)
		return wish(ok, wantTime)
	case gpus:
		n, ok := parseCount(s, MaxGPUs)
		j.Spec.GPUs = sched.Rigid(n)
		return wish(ok, wantGPUs)
	case duration:
		var ok bool
		j.Duration, ok = parseTime(s, p.unit)
		return wish(ok, wantTime)
	case iterations:
		var ok bool
		p.iterations, ok = parseIterations(s)
		return wish(ok, wantIterations)
	}
	if s == "" {
		return ""
	}
	return p.setOptional(j, m, s)
}

// setOptional is set for columns that may be empty, and are not.
func (p *parser) setOptional(j *Job, m meaning, s string) (want string) {
	switch m {
	case priority:
		n, err := strconv.ParseInt(s, 10, 32)
		j.Spec.Priority = int32(n)
		return wish(err == nil, wantPriority)
	case batch:
		n, ok := parseCount(s, math.MaxInt32)
		j.Spec.Batch = sched.BatchRange{Min: int32(n), Max: int32(n)}
		return wish(ok, wantBatch)
	case deadline:
		t, ok := parseTime(s, p.unit)
		j.Spec.Deadline = sched.Time(t)
		return wish(ok, wantTime)
	case wallTime:
		var ok bool
		j.Spec.WallTime, ok = parseTime(s, p.unit)
		return wish(ok, wantTime)
	case clamped:
		if s == "1" {
			p.clamped++
		}
		return wish(s == "0" || s == "1", wantFlag)
	}
	if !printable(s) {
		return wantWord
	}
	*label(j, m) = p.words.intern(m, s)
	return ""
}

// label returns the field of j in which a column of words is kept.
func label(j *Job, m meaning) *string {
	switch m {
	case user:
		return &j.Spec.User
	case group:
		return &j.Spec.Group
	case model:
		return &j.Spec.Model
	case class:
		return &j.Spec.Class
	case state:
		return &j.State
	}
	return &j.GPUType
}

func wish(ok bool, want string) string {
	if ok {
		return ""
	}
	return want
}

// parseCount reads a whole number from 1 to limit, digits only.
func parseCount(s string, limit int) (n int, ok bool) {
	if s == "" || len(s) > 10 {
		return 0, false
	}
	for i := range len(s) {
		d := s[i] - '0'
		if d > 9 {
			return 0, false
		}
		n = 10*n + int(d)
	}
	return n, 1 <= n && n <= limit
}

// parseTime reads a decimal number of units as a time from 0 to MaxTime, exact to the nanosecond, half a nanosecond
// rounded up. Up to 19 digits, leading zeros aside, are read as integers; only longer numbers and those with an exponent
// go through floating point.
func parseTime(s string, unit time.Duration) (t time.Duration, ok bool) {
	var value, scale uint64 = 0, 1
	digits, point := 0, false
	for i := range len(s) {
		c := s[i]
		if c == '.' && !point {
			point = true
			continue
		}
		if c-'0' > 9 || value >= 18e17 || scale >= 1e18 {
			return parseLongTime(s, unit)
		}
		digits++
		value = 10*value + uint64(c-'0')
		if point {
			scale *= 10
		}
	}
	hi, lo := bits.Mul64(value, uint64(unit))
	if rounded, carry := bits.Add64(lo, scale/2, 0); digits > 0 && hi+carry < scale {
		q, _ := bits.Div64(hi+carry, rounded, scale)
		return time.Duration(q), q <= uint64(MaxTime)
	}
	return 0, false
}

// parseLongTime is parseTime by way of floating point.
func parseLongTime(s string, unit time.Duration) (t time.Duration, ok bool) {
	if strings.Trim(s, "0123456789.eE+-") != "" {
		return 0, false // neither NaN, Inf nor hexadecimal digits
	}
	x, err := strconv.ParseFloat(s, 64)
	if x = math.Round(x * float64(unit)); err != nil || !(x >= 0 && x <= float64(MaxTime)) {
		return 0, false
	}
	return time.Duration(x), true
}
