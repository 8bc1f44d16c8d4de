package jobs

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/cli/client"
)

// jobNumber is what names a job in lists: its number, or of a task 12_3.
func jobNumber(j *api.Job) string {
	if j.Array == nil {
		return strconv.Itoa(j.ID)
	}
	return fmt.Sprintf("%d_%d", j.Array.First, j.Array.Index)
}

// arrayName is the name of the array that a job is a task of; "" = of none.
func arrayName(j *api.Job) string {
	if j.Array == nil {
		return ""
	}
	return strings.TrimSuffix(j.Name, "_"+strconv.Itoa(j.Array.Index))
}

// ofArray counts the jobs at the start of a list that are one row: a job, or the tasks of an array.
func ofArray(list []api.Job) int {
	n := 1
	for list[0].Array != nil && n < len(list) && list[n].Array != nil && list[n].Array.First == list[0].Array.First {
		n++
	}
	return n
}

// folded returns tasks of an array as one row: what names them, how they stand, and a job with what they hold and ran
// together, the longest wait, and why and when the first of them that waits. A job alone is itself.
func folded(list []api.Job) (number, state string, row *api.Job) {
	if len(list) == 1 {
		return jobNumber(&list[0]), jobState(&list[0]), &list[0]
	}
	all := list[0]
	all.Name = arrayName(&all)
	all.GPUs, all.Why, all.Start, all.QueueSec, all.RunSec, all.Step, all.Total = nil, "", nil, 0, 0, 0, 0
	all.Attempt, all.Preemptions, all.Resizes, all.Speed = 0, 0, 0, 0
	counts := make(map[string]int)
	for i := range list {
		j := &list[i]
		counts[jobState(j)]++
		all.GPUs = append(all.GPUs, j.GPUs...)
		all.QueueSec, all.RunSec = max(all.QueueSec, j.QueueSec), all.RunSec+j.RunSec
		all.Attempt, all.Preemptions = all.Attempt+j.Attempt, all.Preemptions+j.Preemptions
		all.Resizes, all.Step, all.Total = all.Resizes+j.Resizes, all.Step+j.Step, all.Total+j.Total
		if all.Why == "" {
			all.Why = j.Why
		}
		if all.Start == nil {
			all.Start = j.Start
		}
	}
	var words []string
	for _, word := range append([]string{"running", "starting", "stopping", "waiting", "held"}, outcomes...) {
		switch n := counts[word]; {
		case n == len(list):
			words = append(words, word)
		case n > 0:
			words = append(words, fmt.Sprintf("%d %s", n, word))
		}
	}
	return taskNumbers(list), strings.Join(words, ", "), &all
}

// taskNumbers names tasks of an array in one word, as in 12_[0-3,7%8].
func taskNumbers(list []api.Job) string {
	numbers := make([]int, len(list))
	for i := range list {
		numbers[i] = list[i].Array.Index
	}
	spans := client.Spans(numbers)
	const most = 6 // spans: more are not read
	if len(spans) > most {
		spans = append(spans[:most], "...")
	}
	limit := ""
	if n := list[0].Array.AtOnce; n > 0 {
		limit = "%" + strconv.Itoa(n)
	}
	return fmt.Sprintf("%d_[%s%s]", list[0].Array.First, strings.Join(spans, ","), limit)
}
