package client

import "strconv"

// Spans names numbers in order, those that follow each other as one: 0-3, 7.
func Spans(numbers []int) (spans []string) {
	for i := 0; i < len(numbers); {
		end := i + 1
		for end < len(numbers) && numbers[end] == numbers[end-1]+1 {
			end++
		}
		span := strconv.Itoa(numbers[i])
		if end-i > 1 {
			span += "-" + strconv.Itoa(numbers[end-1])
		}
		spans, i = append(spans, span), end
	}
	return spans
}
