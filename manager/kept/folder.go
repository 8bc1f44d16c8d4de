package kept

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/api/site"
	"github.com/trainyard/trainyard/driver/local/beneath"
	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/manager/store"
	"github.com/trainyard/trainyard/sched"
)

// Folder reads what the folder of a manager keeps, for when no one serves it. It changes nothing of that.
type Folder string

// WriteLog is that of a Client.
func (f Folder) WriteLog(w io.Writer) error {
	log, err := store.Read(string(f))
	if err != nil {
		return err
	}
	defer log.Close()
	lines := bufio.NewScanner(log)
	lines.Buffer(make([]byte, 64<<10), api.MaxEvent)
	for lines.Scan() {
		if _, err := w.Write(append(Redact(lines.Bytes()), '\n')); err != nil {
			return err
		}
	}
	return lines.Err()
}

// Logs calls report with what an attempt of a job wrote, and returns its number; see Client.Logs. Nothing is followed.
func (f Folder) Logs(ctx context.Context, job string, o api.LogOptions, report func(api.Output) error) (sched.JobID,
	error) {
	id, err := f.find(job)
	if err != nil {
		return id, err
	}
	attempts := int32(0)
	for {
		if _, err := os.Stat(string(shim.State(f).RunDir(int32(id), attempts+1))); err != nil {
			break
		}
		attempts++
	}
	standing := site.Standing{Done: true, Attempts: attempts}
	r := site.Reading{Of: Outputs(f), Job: id, From: site.Point{Attempt: int32(o.Attempt)}, Lines: o.Tail,
		Since:   o.Since,
		Current: func() (site.Standing, <-chan struct{}) { return standing, nil },
		Piece: func(p site.Point, text []byte) error {
			return report(api.Output{Attempt: int(p.Attempt), Text: string(text)})
		},
		End: func(site.Point) error { return nil }}
	return id, r.Run(ctx)
}

// find returns the job that a text names: by number, or else the latest of that name.
func (f Folder) find(text string) (id sched.JobID, err error) {
	log, err := store.Read(string(f))
	if err != nil {
		return sched.None, err
	}
	defer log.Close()
	r, err := eventlog.NewReader(log, string(f))
	if err != nil {
		return sched.None, err
	}
	named, jobs := sched.JobID(sched.None), sched.JobID(0)
	for rec, bad := range r.Records() {
		if bad != nil {
			return sched.None, bad
		}
		if rec.Event.Kind == sched.JobArrived {
			if rec.Event.Spec.Name == text {
				named = jobs
			}
			jobs++
		}
	}
	if n, bad := strconv.ParseUint(text, 10, 31); bad == nil && sched.JobID(n) < jobs {
		return sched.JobID(n), nil
	}
	if named == sched.None {
		return sched.None, fmt.Errorf("job %q: %w", text, api.ErrNoJob)
	}
	return named, nil
}

// Kept reports whether the folder keeps a log.
func (f Folder) Kept() bool {
	log, err := store.Read(string(f))
	return err == nil && errors.Join(log.Close()) == nil
}

// slotsName is the file of a folder that has the number of slots which it was served with last.
const slotsName = "slots.json"

// KeepSlots remembers the number of slots that the folder is served with.
func (f Folder) KeepSlots(n int) error {
	if f.Slots() == n {
		return nil
	}
	return shim.State(f).Save(slotsName, n)
}

// Slots returns how many CPU slots the folder was served with last, or started on where that is not kept or cannot be
// read; 0 = it was started on GPUs, or not at all.
func (f Folder) Slots() int {
	log, err := store.Read(string(f))
	if err != nil {
		return 0
	}
	defer log.Close()
	r, err := eventlog.NewReader(log, string(f))
	if err != nil || !slices.Equal(r.Header().Types, []string{device.SlotType}) {
		return 0
	}
	last := 0
	b, err := beneath.Read(string(f), slotsName, 64)
	if err == nil && json.Unmarshal(b, &last) == nil && last > 0 {
		return last
	}
	return r.Header().GPUs
}
