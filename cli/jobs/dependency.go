package jobs

import (
	"fmt"
	"strings"

	"github.com/trainyard/trainyard/manager/jobfile"
	"github.com/trainyard/trainyard/sched"
)

// dependencies are the words of --dependency of sbatch that are known, and how a job must end that waits so.
var dependencies = map[string]string{"afterany": jobfile.AfterAny, "afterok": jobfile.AfterOK,
	"afternotok": jobfile.AfterFail}

// otherDependencies are words of Slurm's that no job can wait by here, with the reason.
var otherDependencies = map[string]string{
	"after":            "want afterany: a job waits for the end of others, not for their start",
	"aftercorr":        "want afterok, for all tasks of an array, or afterok:3_0 for one: all tasks wait for the same",
	"afterburstbuffer": "there are no burst buffers",
	"expand":           "want trainyard resize",
}

// waits notes the jobs that a script waits for, as in afterok:3:4,afterany:5: all of them.
func (f *batchFlags) waits(job map[string]any) error {
	if f.after == "" {
		return nil
	}
	if strings.Contains(f.after, "?") {
		return fmt.Errorf("--dependency %s: a ? is not known here, want commas: all that they part must hold", f.after)
	}
	var list []string
	for _, part := range strings.Split(f.after, ",") {
		if part == "singleton" {
			f.singleton = true
			continue
		}
		word, numbers, _ := strings.Cut(part, ":")
		how, known := dependencies[word]
		if why := otherDependencies[word]; why != "" {
			return fmt.Errorf("--dependency %s: %s is not known here, %s", f.after, word, why)
		}
		if !known {
			return fmt.Errorf("--dependency %s: %s is not known here, want afterok, afterany, afternotok or "+
				"singleton, as in afterok:3:4", f.after, word)
		}
		for _, number := range strings.Split(numbers, ":") {
			if _, _, task := sched.ParseTask(number); !task && !jobfile.IsNumber(number) {
				return fmt.Errorf("--dependency %s: job %q, want its number, as in afterok:3:4", f.after, number)
			}
			list = append(list, how+":"+number)
		}
	}
	if len(list) > 0 {
		job["after"] = list
	}
	return nil
}
