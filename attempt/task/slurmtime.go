package task

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ParseSlurmTime reads a time as Slurm writes limits: minutes, MM:SS, HH:MM:SS, D-HH, D-HH:MM or D-HH:MM:SS. It is
// more than 0.
func ParseSlurmTime(text string) (time.Duration, error) {
	wrong := fmt.Errorf("%s, want minutes, HH:MM:SS or D-HH:MM:SS", text)
	days, rest, dated := strings.Cut(text, "-")
	if !dated {
		days, rest = "0", text
	}
	parts := strings.Split(rest, ":")
	sizes := [][]time.Duration{{time.Minute}, {time.Minute, time.Second},
		{time.Hour, time.Minute, time.Second}}[min(len(parts), 3)-1]
	if dated {
		sizes = []time.Duration{time.Hour, time.Minute, time.Second}[:min(len(parts), 3)]
	}
	if len(sizes) != len(parts) {
		return 0, wrong
	}
	total := time.Duration(0)
	for i, part := range append([]string{days}, parts...) {
		n, err := strconv.ParseUint(part, 10, 16)
		if err != nil {
			return 0, wrong
		}
		total += time.Duration(n) * append([]time.Duration{24 * time.Hour}, sizes...)[i]
	}
	if total == 0 {
		return 0, wrong
	}
	return total, nil
}
