package trace

import (
	"strconv"
	"strings"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// swfOut is the output in the Standard Workload Format. Users and groups become numbers in order of first appearance;
// jobs keep their names if these are rising numbers from 1 on, and are numbered otherwise. GPUs stand for processors;
// times have decimals where they need them, which the format allows.
type swfOut struct {
	users, groups map[string]int
	jobs          int
	last          int64 // the number of the job seen last
	numbered      bool  // names are no rising numbers
}

func newSWFOut() *swfOut { return &swfOut{users: make(map[string]int), groups: make(map[string]int)} }

func (o *swfOut) see(j *Job) (why string) {
	if why = unwritable(j); why != "" {
		return why
	}
	o.jobs++
	giveNumber(o.users, j.Spec.User)
	giveNumber(o.groups, j.Spec.Group)
	n, err := strconv.ParseInt(j.Spec.Name, 10, 64)
	o.numbered = o.numbered || err != nil || n <= o.last || j.Spec.Name[0] == '+' || j.Spec.Name[0] == '0'
	o.last = n
	return ""
}

// giveNumber gives name the next number unless it has one.
func giveNumber(numbers map[string]int, name string) {
	if name != "" && numbers[name] == 0 {
		numbers[name] = len(numbers) + 1
	}
}

func (o *swfOut) head(b []byte, t *Trace) []byte {
	o.last = 0
	b = append(b, "; Version: 2.2\n; MaxJobs: "+strconv.Itoa(o.jobs)+"\n; MaxRecords: "+strconv.Itoa(o.jobs)+"\n"...)
	if !t.Origin.IsZero() {
		b = append(b, "; UnixStartTime: "+strconv.FormatInt(t.Origin.Unix(), 10)+"\n"...)
	}
	b = append(b, "; Note: processors are GPUs; UnixStartTime, if any, is what the recorded clock showed, as if it "+
		"were UTC\n"...)
	return append(b, strings.ReplaceAll(t.notes(";"), "; source:", "; Computer:")...)
}

// row appends the 18 fields of j: job, submit, wait, run, processors, CPU time, memory, then the same three asked for,
// status, user, group, executable, queue, partition, preceding job, think time.
func (o *swfOut) row(b []byte, j *Job) []byte {
	o.last++
	if b = append(b, j.Spec.Name...); o.numbered {
		b = strconv.AppendInt(b[:0], o.last, 10)
	}
	b = sched.AppendSeconds(append(b, ' '), time.Duration(j.Spec.Submit))
	b = append(b, " -1 "...)
	b = sched.AppendSeconds(b, j.Duration)
	b = appendValue(append(b, ' '), j, gpuParts)
	b = appendValue(append(b, " -1 -1 "...), j, gpuParts)
	if b = append(b, " -1"...); j.Spec.WallTime > 0 {
		b = sched.AppendSeconds(b[:len(b)-2], j.Spec.WallTime)
	}
	b = append(b, " -1 "+swfStatus(j.State)...)
	b = appendNumber(b, o.users[j.Spec.User])
	b = appendNumber(b, o.groups[j.Spec.Group])
	return append(b, " -1 -1 -1 -1 -1"...)
}

// appendNumber appends a number behind a space, -1 for 0.
func appendNumber(b []byte, n int) []byte {
	if n == 0 {
		n = -1
	}
	return strconv.AppendInt(append(b, ' '), int64(n), 10)
}

// swfStatus returns the status that a word for the end of a job stands for.
func swfStatus(state string) string {
	switch strings.ToLower(state) {
	case "completed", "pass", "passed", "finished", "succeeded", "terminated":
		return "1"
	case "failed", "timeout", "node_fail", "out_of_memory", "boot_fail", "deadline":
		return "0"
	case "cancelled", "canceled", "killed", "revoked":
		return "5"
	}
	return "-1"
}
