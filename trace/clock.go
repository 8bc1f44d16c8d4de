package trace

import (
	"strconv"
	"strings"
	"time"
)

// unknownTimes are what stands for a time that is not known.
var unknownTimes = []string{"", "Unknown", "None", "NULL", "null", "NaT", "N/A"}

// fileClock is the clock that the times of a file are read from, set to the first offset from UTC that the file states.
type fileClock struct {
	offset time.Duration
	known  bool // an offset has been seen
}

// parse reads a date and a time of day, such as 2017-10-09 07:01:55, with T or a space between them, perhaps with
// decimals of a second and an offset from UTC behind it. It returns what the clock shows as a time since 1970, or -1 if
// that is unknown. Where offsets are stated, clocks are set to the first one, so that differences stay right when
// daylight saving starts or ends.
func (c *fileClock) parse(s string) (t time.Duration, ok bool) {
	for _, word := range unknownTimes {
		if s == word {
			return -1, true
		}
	}
	if len(s) < len("2006-01-02 15:04:05") || s[10] != ' ' && s[10] != 'T' {
		return 0, false
	}
	day, ok := parseDay(s[:10])
	second, okSecond := parseTimeOfDay(s[11:19])
	decimals, offset, okRest := parseClockRest(s[19:])
	if !ok || !okSecond || !okRest {
		return 0, false
	}
	t = time.Duration(day*86400+second) * time.Second
	if offset != "" {
		east, known := parseOffset(offset)
		if !c.known {
			c.known, c.offset = true, east
		}
		if ok = known; !ok {
			return 0, false
		}
		t += c.offset - east
	}
	return t + decimals, timeOK(t)
}

// parseDay returns the number of days from 1970-01-01 to the date s, 2017-10-09.
func parseDay(s string) (day int, ok bool) {
	year, okYear := number(s[0:4])
	month, okMonth := number(s[5:7])
	date, okDate := number(s[8:10])
	if !okYear || !okMonth || !okDate || s[4] != '-' || s[7] != '-' {
		return 0, false
	}
	d := time.Date(year, time.Month(month), date, 0, 0, 0, 0, time.UTC)
	return int(d.Unix() / 86400), year >= 1970 && int(d.Month()) == month && d.Day() == date
}

// parseTimeOfDay returns the number of seconds from midnight to s, 07:01:55. A leap second is the second behind it.
func parseTimeOfDay(s string) (second int, ok bool) {
	h, okHour := number(s[0:2])
	m, okMinute := number(s[3:5])
	sec, okSecond := number(s[6:8])
	ok = okHour && okMinute && okSecond && s[2] == ':' && s[5] == ':' && h < 24 && m < 60 && sec <= 60
	return 3600*h + 60*m + sec, ok
}

// parseClockRest reads decimals of a second, if any, and returns what follows.
func parseClockRest(s string) (decimals time.Duration, offset string, ok bool) {
	if s == "" || s[0] != '.' {
		return 0, s, true
	}
	n := 1
	for n < len(s) && s[n]-'0' <= 9 {
		n++
	}
	decimals, ok = parseTime("0"+s[:n], time.Second)
	return decimals, s[n:], ok && n > 1
}

// parseOffset reads an offset from UTC: Z, +08:00, +0800 or -08.
func parseOffset(s string) (east time.Duration, ok bool) {
	if s == "Z" {
		return 0, true
	}
	digits := strings.Replace(s[1:], ":", "", 1)
	if s[0] != '+' && s[0] != '-' || len(digits) != 2 && len(digits) != 4 {
		return 0, false
	}
	h, okHour := number(digits[:2])
	m, okMinute := number((digits + "00")[2:4])
	east = time.Duration(h)*time.Hour + time.Duration(m)*time.Minute
	if s[0] == '-' {
		east = -east
	}
	return east, okHour && okMinute && h <= 14 && m < 60
}

// parseLimit reads a time as Slurm prints it, [days-]hours:minutes:seconds; 0 where there is no limit.
func parseLimit(s string) (t time.Duration, ok bool) {
	if s == "UNLIMITED" || s == "Partition_Limit" || s == "INVALID" {
		return 0, true
	}
	days := 0
	if text, rest, dash := strings.Cut(s, "-"); dash {
		if days, ok = number(text); !ok || days > 36525 {
			return 0, false
		}
		s = rest
	}
	if len(s) != len("15:04:05") {
		return 0, false
	}
	second, ok := parseTimeOfDay(s)
	t = time.Duration(days)*24*time.Hour + time.Duration(second)*time.Second
	return t, ok && timeOK(t)
}

// number reads a whole number in digits alone.
func number(s string) (n int, ok bool) {
	if s == "" || len(s) > 9 {
		return 0, false
	}
	for i := range len(s) {
		if s[i]-'0' > 9 {
			return 0, false
		}
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}
