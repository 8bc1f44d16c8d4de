package task

import (
	"strconv"
	"strings"
	"time"
)

// TimeLimitOf returns the TimeLimit of an encoded task; 0 = none. It reads nothing else of it, for lists of many.
func TimeLimitOf(encoded string) time.Duration {
	const key = `"time_limit_ns":` // in no string: its quotes would be escaped
	for {
		_, rest, found := strings.Cut(encoded, key)
		if !found {
			return 0
		}
		end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
		if ns, err := strconv.ParseInt(rest[:max(end, 0)], 10, 64); err == nil {
			return time.Duration(ns)
		}
		encoded = rest // a variable of that name, whose value is a string
	}
}
