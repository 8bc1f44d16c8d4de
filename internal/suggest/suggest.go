// Package suggest finds the word someone probably meant, for error messages about unknown names.
package suggest

import (
	"strconv"
	"strings"
)

// maxWord bounds the words compared, in bytes: a longer one is no typing error.
const maxWord = 64

// Nearest returns the word of among that is nearest to word, or "" if none is near. Near means: at most a third of
// word's length (and always one) in letters inserted, removed, changed or swapped with their neighbour, upper and lower
// case being the same; failing that, word is the start of a candidate and at least three bytes long. Ties go to the
// earlier candidate.
func Nearest(word string, among []string) string {
	if word == "" || len(word) > maxWord {
		return ""
	}
	lower := strings.ToLower(word)
	best, bestAt := max(1, len(word)/3)+1, ""
	for _, c := range among {
		if c == "" || len(c) > maxWord {
			continue
		}
		if d := distance(lower, strings.ToLower(c)); d < best && d < len(c) {
			best, bestAt = d, c
		}
	}
	if bestAt == "" && len(word) >= 3 {
		return startingWith(lower, among)
	}
	return bestAt
}

// startingWith returns the first of the shortest candidates that start with prefix, or "".
func startingWith(prefix string, among []string) string {
	best := ""
	for _, c := range among {
		if strings.HasPrefix(strings.ToLower(c), prefix) && (best == "" || len(c) < len(best)) {
			best = c
		}
	}
	return best
}

// Hint returns ` (did you mean "x"?)` for the nearest word x, or "" if none is near.
func Hint(word string, among []string) string {
	if near := Nearest(word, among); near != "" {
		return " (did you mean " + strconv.Quote(near) + "?)"
	}
	return ""
}

// distance is the optimal string alignment distance of a and b in bytes.
func distance(a, b string) int {
	var rows [3][maxWord + 1]int
	before, last, row := &rows[0], &rows[1], &rows[2]
	for j := range len(b) + 1 {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := last[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			row[j] = min(change, last[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
