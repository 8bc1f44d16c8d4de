package sched

import (
	"math"
	"strconv"
	"time"
)

// Time is a point in time in nanoseconds since the origin of the run. Drivers choose the origin (the first
// instant of a trace, the creation of a store) and state it in the log's snapshot.
type Time int64

// Never is later than every event.
const Never Time = math.MaxInt64

// Seconds converts a duration in seconds, rounded to the nearest nanosecond, half away from zero.
func Seconds(s float64) time.Duration { return time.Duration(math.Round(s * 1e9)) }

// Add returns t+d, saturating at Never.
func (t Time) Add(d time.Duration) Time {
	if s := t + Time(d); d <= 0 || s > t {
		return s
	}
	return Never
}

// Sub returns the time from u to t.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// Seconds returns t in seconds since the origin.
func (t Time) Seconds() float64 { return time.Duration(t).Seconds() }

// String prints seconds with as many digits as needed, or "never".
func (t Time) String() string {
	if t == Never {
		return "never"
	}
	return FormatSeconds(time.Duration(t)) + "s"
}

// FormatSeconds prints d in seconds with as many digits as it needs: 12, 0.5, 1.000000001.
func FormatSeconds(d time.Duration) string { return string(AppendSeconds(nil, d)) }

// AppendSeconds appends FormatSeconds(d) to dst.
func AppendSeconds(dst []byte, d time.Duration) []byte {
	if d < 0 {
		dst = append(dst, '-')
	}
	u := uint64(d)
	if d < 0 {
		u = -u
	}
	dst = strconv.AppendUint(dst, u/1e9, 10)
	if frac := u % 1e9; frac != 0 {
		digits := strconv.AppendUint(make([]byte, 0, 10), frac+1e9, 10)[1:]
		for digits[len(digits)-1] == '0' {
			digits = digits[:len(digits)-1]
		}
		dst = append(append(dst, '.'), digits...)
	}
	return dst
}

// GPUSeconds is GPU time: GPUs held multiplied by seconds.
type GPUSeconds float64

// GPUTime returns the GPU time of n GPUs held for d.
func GPUTime(n int, d time.Duration) GPUSeconds { return GPUSeconds(float64(n) * d.Seconds()) }

// Joules is energy.
type Joules float64

// Watts is power.
type Watts float64

// Dollars is money, in whatever currency the prices were given.
type Dollars float64
