package task

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// ParseSlurmMoment reads a point in time as Slurm writes it: now, now+1hour, now-2days, today, midnight, noon,
// tomorrow, 16:00[:30], 1130, 11/30[/26], 2026-11-30 or 2026-11-30T16:00[:30]. A time of day, and a day without a year,
// is the next one after now, or the last one before it where past is true.
func ParseSlurmMoment(text string, now time.Time, past bool) (time.Time, error) {
	if rest, relative := strings.CutPrefix(text, "now"); relative {
		return fromNow(text, rest, now)
	}
	midnight := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	switch text {
	case "today":
		if past {
			return midnight, nil
		}
		return now, nil
	case "tomorrow":
		return midnight.AddDate(0, 0, 1), nil
	case "midnight":
		return nearest(midnight, now, past, 0, 1), nil
	case "noon":
		return nearest(midnight.Add(12*time.Hour), now, past, 0, 1), nil
	}
	for _, layout := range []string{"15:04", "15:04:05"} {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			at := time.Date(now.Year(), now.Month(), now.Day(), t.Hour(), t.Minute(), t.Second(), 0, now.Location())
			return nearest(at, now, past, 0, 1), nil
		}
	}
	for _, layout := range []string{"2006-01-02", "2006-01-02T15:04", "2006-01-02T15:04:05", "01/02/06"} {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return t, nil
		}
	}
	for _, layout := range []string{"0102", "01/02"} {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			at := time.Date(now.Year(), t.Month(), t.Day(), 0, 0, 0, 0, now.Location())
			return nearest(at, now, past, 1, 0), nil
		}
	}
	return time.Time{}, notAMoment(text)
}

// nearest is t, or what is years and days later or earlier where t lies on the other side of now.
func nearest(t, now time.Time, past bool, years, days int) time.Time {
	switch {
	case past && t.After(now):
		return t.AddDate(-years, 0, -days)
	case !past && t.Before(now):
		return t.AddDate(years, 0, days)
	}
	return t
}

// fromNow reads what follows now: nothing, or a sign, a number and a unit.
func fromNow(text, rest string, now time.Time) (time.Time, error) {
	if rest == "" {
		return now, nil
	}
	word := strings.TrimLeft(rest[1:], "0123456789")
	n, err := strconv.ParseInt(strings.TrimSuffix(rest[1:], word), 10, 64)
	unit, known := map[string]time.Duration{"": time.Second, "second": time.Second, "minute": time.Minute,
		"hour": time.Hour, "day": 24 * time.Hour, "week": 7 * 24 * time.Hour}[strings.TrimSuffix(word, "s")]
	switch {
	case err != nil || !known || n > math.MaxInt64/int64(unit):
	case rest[0] == '+':
		return now.Add(time.Duration(n) * unit), nil
	case rest[0] == '-':
		return now.Add(-time.Duration(n) * unit), nil
	}
	return time.Time{}, notAMoment(text)
}

func notAMoment(text string) error {
	return fmt.Errorf("%s, want a time as now+1hour, 16:00 or 2026-01-31T16:00", text)
}
