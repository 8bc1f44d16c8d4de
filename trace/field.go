package trace

import (
	"math"
	"math/bits"
	"slices"
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
	wantParts    = "want a whole number from 1 to 1000000, or one with up to three decimals"
	wantCount    = "want a whole number from 0 to 1000000"
	wantFraction = "want a number from 0 to 1e9"
	wantFactor   = "want -1 for none, or a number from 0 to 1e9"
	wantClock    = "want a time such as 2017-10-09 07:01:55, from 1970 to 2069"
	wantLimit    = "want a time such as 1-12:30:00, or UNLIMITED"
	wantSaves    = "want yes or no, or nothing where it is unknown"
	wantPreempt  = "want after-save, true or false"
	wantMaybe    = "want a time from 0 to 100 years, or nothing where it is unknown"
)

// set stores the value s of a column in j and returns what was wanted if s is not it, else "".
func (r *row) set(j *Job, m meaning, s string) (want string) {
	switch m {
	case jobID:
		j.Spec.Name = r.words.keep(s)
		return wanted(s != "" && printable(s), wantID)
	case submit:
		t, ok := parseTime(s, r.unit)
		j.Spec.Submit = sched.Time(t)
		return wanted(ok, wantTime)
	case gpus:
		n, ok := parseCount(s, MaxGPUs)
		j.Spec.GPUs = sched.Rigid(n)
		return wanted(ok, wantGPUs)
	case duration:
		var ok bool
		j.Duration, ok = parseTime(s, r.unit)
		return wanted(ok, wantTime)
	case iterations:
		var ok bool
		r.said.iterations, ok = parseIterations(s)
		return wanted(ok, wantIterations)
	case gpuParts:
		return wanted(j.ask(s), wantParts)
	case jobType:
		j.Spec.Model, j.Spec.Batch = r.splitType(s)
		return wanted(s != "" && printable(s), wantID)
	}
	if m >= clockSubmit {
		return r.say(j, m, s)
	}
	if s == "" {
		return ""
	}
	return r.setOptional(j, m, s)
}

// setOptional is set for columns that may be empty, and are not.
func (r *row) setOptional(j *Job, m meaning, s string) (want string) {
	switch m {
	case priority:
		n, err := strconv.ParseInt(s, 10, 32)
		j.Spec.Priority = int32(n)
		return wanted(err == nil, wantPriority)
	case batch:
		n, ok := parseCount(s, math.MaxInt32)
		j.Spec.Batch = sched.BatchRange{Min: int32(n), Max: int32(n)}
		return wanted(ok, wantBatch)
	case deadline:
		t, ok := parseTime(s, r.unit)
		j.Spec.Deadline = sched.Time(t)
		return wanted(ok, wantTime)
	case wallTime:
		var ok bool
		j.Spec.WallTime, ok = parseTime(s, r.unit)
		return wanted(ok, wantTime)
	case clamped:
		if s == "1" {
			r.clamped++
		}
		return wanted(s == "0" || s == "1", wantFlag)
	case attempts:
		n, ok := parseCount(s, math.MaxInt32)
		j.Attempts = int32(n)
		return wanted(ok, wantBatch)
	case saves:
		j.Saves = Saving(1 + slices.Index(savingWords[1:], s))
		j.Spec.Saves = j.Saves == SavesWork
		return wanted(j.Saves != 0, wantSaves)
	case preemptible:
		var ok bool
		j.Spec.Preempt, ok = sched.ParsePreemptible(s)
		return wanted(ok, wantPreempt)
	case limit:
		var ok bool
		j.Spec.WallTime, ok = parseLimit(s)
		return wanted(ok, wantLimit)
	}
	if s != r.words.last[m] && !printable(s) {
		return wantWord
	}
	*label(j, m) = r.words.intern(m, s)
	return ""
}

// say keeps the value s of a column that is no field of a job until the row is finished.
func (r *row) say(j *Job, m meaning, s string) (want string) {
	ok := false
	switch m {
	case clockSubmit:
		var t time.Duration
		if t, ok = r.clock.parse(s); t < 0 {
			r.leaveOut("unknown time of submission")
		}
		j.Spec.Submit = sched.Time(max(t, 0))
		return wanted(ok, wantClock)
	case clockStart:
		r.said.start, ok = r.clock.parse(s)
		return wanted(ok, wantClock)
	case clockEnd:
		r.said.end, ok = r.clock.parse(s)
		return wanted(ok, wantClock)
	case started:
		r.said.start, ok = parseMaybe(s, r.unit)
		return wanted(ok, wantMaybe)
	case ended:
		r.said.end, ok = parseMaybe(s, r.unit)
		return wanted(ok, wantMaybe)
	case asked:
		r.said.asked = s
		return ""
	case given:
		r.said.given = s
		return ""
	}
	return r.sayNumber(m, s)
}

// sayNumber is say for numbers.
func (r *row) sayNumber(m meaning, s string) (want string) {
	ok := false
	switch m {
	case width:
		r.said.width, ok = parseCount(s, MaxGPUs)
		return wanted(ok || s == "0", wantCount)
	case parts:
		r.said.parts, ok = parseFraction(s)
	case copies:
		r.said.copies, ok = parseFraction(s)
	case factor:
		if r.said.factor, ok = parseFraction(strings.TrimPrefix(s, "-")); strings.HasPrefix(s, "-") {
			r.said.factor, ok = 0, ok && r.said.factor == 1 // -1 = none
		}
		return wanted(ok, wantFactor)
	}
	return wanted(ok, wantFraction)
}

// ask has j ask for as many GPUs as the decimal number s says, and reports whether it says so.
func (j *Job) ask(s string) bool {
	whole, decimals, _ := strings.Cut(s, ".")
	decimals = strings.TrimRight(decimals, "0")
	if whole == "" || len(whole) > 7 || len(decimals) > 3 || strings.Trim(whole+decimals, "0123456789") != "" {
		return false
	}
	n, _ := strconv.Atoi(whole + (decimals + "000")[:3])
	return j.askMilli(n)
}

// askMilli has j ask for n thousandths of a GPU, and reports whether that many may be asked for.
func (j *Job) askMilli(n int) bool {
	if n < 1 || n > 1000*MaxGPUs {
		return false
	}
	j.Spec.GPUs, j.MilliGPU = sched.Rigid((n+999)/1000), 0
	if n%1000 != 0 {
		j.MilliGPU = int32(n)
	}
	return true
}

// splitType cuts "LM (batch size 20)" into model and batch size; what has another form is a model.
func (r *row) splitType(s string) (word string, size sched.BatchRange) {
	name, rest, ok := strings.Cut(s, " (batch size ")
	if n, isNumber := parseCount(strings.TrimSuffix(rest, ")"), math.MaxInt32); ok && isNumber &&
		strings.HasSuffix(rest, ")") {
		return r.words.intern(model, name), sched.BatchRange{Min: int32(n), Max: int32(n)}
	}
	return r.words.intern(model, s), sched.BatchRange{}
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

func wanted(ok bool, want string) string {
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
// rounded up. Up to 19 digits, leading zeros aside, are read as integers; only longer numbers and those with an
// exponent go through floating point.
func parseTime(s string, unit time.Duration) (t time.Duration, ok bool) {
	if t, ok = parseShortTime(s, unit); ok {
		return t, true
	}
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

// parseShortTime is parseTime for whole numbers below 1e9, as most are; ok is false for any other.
func parseShortTime(s string, unit time.Duration) (t time.Duration, ok bool) {
	if s == "" || len(s) > 9 {
		return 0, false
	}
	n := uint64(0)
	for i := range len(s) {
		if s[i]-'0' > 9 {
			return 0, false
		}
		n = 10*n + uint64(s[i]-'0')
	}
	hi, lo := bits.Mul64(n, uint64(unit))
	return time.Duration(lo), hi == 0 && lo <= uint64(MaxTime)
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

// parseMaybe is parseTime for a column in which nothing, or -1, stands for an unknown time; it returns -1 for that.
func parseMaybe(s string, unit time.Duration) (t time.Duration, ok bool) {
	if s == "" || s == "-1" {
		return -1, true
	}
	return parseTime(s, unit)
}

// parseFraction reads a number from 0 to 1e9; nothing is 0.
func parseFraction(s string) (x float64, ok bool) {
	if s == "" {
		return 0, true
	}
	t, ok := parseTime(s, time.Second)
	return float64(t) / 1e9, ok && t <= 1e9*time.Second
}
