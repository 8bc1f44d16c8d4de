package task

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/trainyard/trainyard/model/scaling"
	"github.com/trainyard/trainyard/sched"
)

// Variables is what the environment of a training process says of its attempt, wherever it runs.
type Variables struct {
	Job        sched.JobID
	Attempt    int32
	GPUs       int      // of the attempt, on all its nodes
	Devices    []string // that the process itself has
	Checkpoint string   // folder; "" = the process gets none
	Grace      time.Duration
	Config     sched.Config // the batch size that was decided, if it was, and whether others have its GPUs
	GPUMemGB   float32      // of each GPU, that the job is to keep to where it shares; 0 = no bound
}

// Environment returns what t says as NAME=VALUE.
func (t *Variables) Environment() []string {
	resume := 0
	if t.Attempt > 1 {
		resume = 1
	}
	env := []string{
		"TRAINYARD_JOB_ID=" + strconv.Itoa(int(t.Job)),
		"TRAINYARD_ATTEMPT=" + strconv.Itoa(int(t.Attempt)),
		"TRAINYARD_NUM_GPUS=" + strconv.Itoa(t.GPUs),
		"TRAINYARD_DEVICES=" + strings.Join(t.Devices, ","),
		"TRAINYARD_RESUME=" + strconv.Itoa(resume),
		"TRAINYARD_GRACE_SECONDS=" + seconds(t.Grace),
		"TORCH_ELASTIC_SHUTDOWN_TIMEOUT=" + seconds(max(t.Grace-10*time.Second, time.Second)),
	}
	if t.Checkpoint != "" {
		env = append(env, "TRAINYARD_CHECKPOINT_DIR="+t.Checkpoint)
	}
	if t.Config.Share == sched.Shared && t.GPUMemGB > 0 {
		env = append(env, "TRAINYARD_GPU_MEMORY_MIB="+strconv.Itoa(int(t.GPUMemGB*1024)))
	}
	if c := &t.Config; c.Batch > 0 {
		each := scaling.PerGPU(int(c.Batch), t.GPUs, int(c.Accum))
		env = append(env, fmt.Sprint("TRAINYARD_BATCH_GLOBAL=", c.Batch), fmt.Sprint("TRAINYARD_BATCH_PER_GPU=", each),
			fmt.Sprint("TRAINYARD_BATCH_ACCUM=", max(c.Accum, 1)),
			fmt.Sprint("TRAINYARD_LR_SCALE=", cmp.Or(c.LRScale, 1)))
	}
	return env
}

func seconds(d time.Duration) string { return strconv.Itoa(int(d.Seconds())) }
