package term

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// Days is the value of a flag: a time that may be given in days, as 30d.
type Days time.Duration

// Set reads whole days, as 30d, or what time.ParseDuration reads.
func (d *Days) Set(text string) error {
	if days, has := strings.CutSuffix(text, "d"); has {
		n, err := strconv.ParseInt(days, 10, 16)
		if err != nil {
			return errors.New("want a time such as 30d or 12h")
		}
		*d = Days(time.Duration(n) * 24 * time.Hour)
		return nil
	}
	t, err := time.ParseDuration(text)
	if err != nil {
		return errors.New("want a time such as 30d or 12h")
	}
	*d = Days(t)
	return nil
}

// String writes whole days as days, and nothing as "".
func (d *Days) String() string {
	t := time.Duration(*d)
	switch {
	case t == 0:
		return ""
	case t%(24*time.Hour) == 0:
		return strconv.Itoa(int(t/(24*time.Hour))) + "d"
	}
	return t.String()
}

// Type is what help calls it.
func (d *Days) Type() string { return "TIME" }
