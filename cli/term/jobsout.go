package term

import (
	"bytes"
	"encoding/csv"
	"io"
	"strconv"
	"time"

	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/sched"
)

// JobColumns is the header of --jobs-out. It is part of the command line's contract.
const JobColumns = "system,job_id,submit_s,start_s,finish_s,jct_s,queue_s,run_s,gpus,gpu_seconds," +
	"preemptions,promotions,migrations,resizes,energy_j,status\n"

// WriteJobRows writes one row per job of a system.
func WriteJobRows(w io.Writer, system string, jobs []metrics.Job) error {
	var row []byte
	for i := range jobs {
		row = appendJob(row[:0], system, &jobs[i])
		if _, err := w.Write(row); err != nil {
			return err
		}
	}
	return nil
}

// appendJob appends the row of one job. Finish, JCT and queue are empty unless it finished, start is if it never did.
func appendJob(b []byte, system string, j *metrics.Job) []byte {
	b = append(append(b, system...), ',')
	b = append(appendField(b, j.Name), ',')
	b = appendTime(b, j.Submit)
	b = appendTime(b, j.Start)
	if j.Outcome == sched.Finished {
		b = appendTime(b, j.Finish)
		b = append(sched.AppendSeconds(b, j.JCT()), ',')
		b = append(sched.AppendSeconds(b, j.Queue()), ',')
	} else {
		b = append(b, ",,,"...)
	}
	b = append(sched.AppendSeconds(b, j.Run), ',')
	b = append(strconv.AppendInt(b, int64(j.GPUs), 10), ',')
	b = append(strconv.AppendFloat(b, float64(j.Service), 'f', -1, 64), ',')
	for _, n := range []int32{j.Preemptions, j.Promotions, j.Migrations, j.Resizes} {
		b = append(strconv.AppendInt(b, int64(n), 10), ',')
	}
	b = append(strconv.AppendFloat(b, float64(j.Energy), 'f', -1, 64), ',')
	return append(append(b, Status(j)...), '\n')
}

// appendTime appends a time and a comma, the comma alone if there is none.
func appendTime(b []byte, t sched.Time) []byte {
	if t != sched.None {
		b = sched.AppendSeconds(b, time.Duration(t))
	}
	return append(b, ',')
}

// appendField appends a name, quoted where CSV wants it.
func appendField(b []byte, s string) []byte {
	plain := s != ""
	for i := range len(s) {
		c := s[i]
		plain = plain && (c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c == '_' ||
			c == '-' || c == '.')
	}
	if plain {
		return append(b, s...)
	}
	var quoted bytes.Buffer
	w := csv.NewWriter(&quoted)
	_ = w.Write([]string{s}) // a Buffer takes everything
	w.Flush()
	return append(b, bytes.TrimSuffix(quoted.Bytes(), []byte("\n"))...)
}

// Status says what became of a job.
func Status(j *metrics.Job) string {
	switch j.Outcome {
	case sched.Finished:
		return "finished"
	case sched.Cancelled:
		return "cancelled"
	case sched.Failed:
		return "failed"
	case sched.RejectedJob:
		return "rejected"
	}
	if j.Start == sched.None {
		return "never-started"
	}
	return "unfinished"
}
