package trace

import (
	"fmt"
	"strings"

	"github.com/trainyard/trainyard/sched"
)

// sacctLayout is what Slurm's sacct --parsable2 prints. GPUs are those of AllocTRES, or of ReqTRES where that has none.
// Job steps, jobs without GPU and jobs that have not run to an end are left out; "CANCELLED by 1000" is CANCELLED.
// Times are local, without a zone: where daylight saving ends or starts they jump.
//
// Source: manual page of sacct, JOB ACCOUNTING FIELDS.
var sacctLayout = layout{
	name:      "sacct",
	line:      "output of Slurm's sacct --parsable2, account as group",
	zone:      "seconds from the first submission, in the local time of the cluster; zone not stated",
	source:    "Slurm accounting; run time from the last start to the end",
	clock:     true,
	separator: '|',
	columns: append([]column{
		{name: "JobID", means: jobID},
		{name: "Submit", means: clockSubmit},
		{name: "Start", means: clockStart},
		{name: "End", means: clockEnd},
		{name: "State", means: state},
		{name: "AllocTRES", means: given, optional: true},
		{name: "ReqTRES", means: asked, optional: true},
		{name: "User", means: user, optional: true},
		{name: "Account", means: group, optional: true},
		{name: "Timelimit", means: limit, optional: true},
	}, sacctIgnored...),
	oneOf:  []string{"AllocTRES", "ReqTRES"},
	finish: finishSacct,
}

// sacctIgnored are fields of sacct that say nothing a trace holds, and are often printed.
var sacctIgnored = ignore("JobIDRaw JobName Partition QOS Cluster UID GID Group Eligible Elapsed ElapsedRaw " +
	"TimelimitRaw Planned " +
	"Reserved NNodes AllocNodes ReqNodes NodeList NCPUS AllocCPUS ReqCPUS NTasks ReqMem MaxRSS AveRSS Restarts " +
	"CPUTime CPUTimeRAW " +
	"TotalCPU UserCPU SystemCPU ExitCode DerivedExitCode Priority Reason Comment WorkDir SubmitLine Constraints " +
	"Flags " +
	"ConsumedEnergy ConsumedEnergyRaw Layout Reservation ReservationId Suspended WCKey McsLabel Licenses")

// ignore returns optional columns that are read over.
func ignore(names string) []column {
	var list []column
	for _, name := range strings.Fields(names) {
		list = append(list, column{name: name, means: ignored, optional: true})
	}
	return list
}

func finishSacct(r *row, j *Job) (wrong string) {
	if strings.Contains(j.Spec.Name, ".") {
		r.leaveOut("steps of jobs")
		return ""
	}
	if r.drop != "" {
		return ""
	}
	j.State, _, _ = strings.Cut(j.State, " ") // CANCELLED by 1000
	text := r.said.given
	if !strings.Contains(text, "gres/gpu") {
		text = r.said.asked
	}
	n, typ, ok := gpusOf(text)
	switch {
	case !ok:
		return fmt.Sprintf("TRES %q, want gres/gpu= with a whole number up to %d", clip(text), MaxGPUs)
	case n == 0:
		r.leaveOut(noGPU)
		return ""
	}
	j.Spec.GPUs, j.GPUType = sched.Rigid(n), r.words.intern(gpuType, typ)
	r.ran(j)
	return ""
}

// gpusOf returns the number of GPUs in a list of trackable resources, such as cpu=8,gres/gpu=4,gres/gpu:a100=4, and
// their type if there is one alone. GPUs that are reported by type only are added up.
func gpusOf(tres string) (n int, typ string, ok bool) {
	total, typed, types := -1, 0, 0
	for rest := tres; rest != ""; {
		var item string
		item, rest, _ = strings.Cut(rest, ",")
		name, value, _ := strings.Cut(item, "=")
		if name != "gres/gpu" && !strings.HasPrefix(name, "gres/gpu:") {
			continue
		}
		k, isNumber := parseCount(value, MaxGPUs)
		if !isNumber && value != "0" {
			return 0, "", false
		}
		if name == "gres/gpu" {
			total = k
			continue
		}
		typed, types, typ = typed+k, types+1, name[len("gres/gpu:"):]
	}
	if total < 0 {
		total = typed
	}
	if types != 1 || !printable(typ) {
		typ = ""
	}
	return total, typ, total <= MaxGPUs
}
