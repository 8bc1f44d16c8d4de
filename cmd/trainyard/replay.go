package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/manager"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/model/remaining"
	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
)

// replayFlags are the flags of replay as given.
type replayFlags struct {
	reload bool
	json   bool

	variability string
}

func newReplay() *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay LOG.jsonl",
		Short: "Decide a recorded log again, and compare",
		Long: `Plays what came from outside (arrivals, starts, ends, wake-ups) back to the
system that wrote the log and compares every decision and order with the
recorded one, byte for byte. The log is that of --events-out, of a run of real
processes or of a simulation under a system that needs no knowledge of the
future. Where the system was changed on the way, the last one decides again what
it decided; what others decided before is taken as it stands.`,
		Example: `  trainyard run jobs.yaml --events-out log.jsonl && trainyard replay log.jsonl`,
		Args:    exactly("LOG.jsonl"),
		RunE:    func(cmd *cobra.Command, args []string) error { return f.replay(cmd, args[0]) },
	}
	fs := cmd.Flags()
	fs.BoolVar(&f.reload, "reload", false, "save the system's memory before every batch and go on with a new one that is given it")
	fs.StringVar(&f.variability, "variability", "", "PM scores that the system knew: `FILE` with gpu,node,pm_classA,...")
	fs.BoolVar(&f.json, "json", false, "one JSON document instead of a line")
	return cmd
}

func (f *replayFlags) replay(cmd *cobra.Command, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	log, err := rereadable(file)
	if err != nil {
		return err
	}
	h, began, err := renewal(log, path)
	if err != nil {
		return malformed(err)
	}
	if h.Preset != "" {
		return usagef("%s: of preset %s, want a log without one", path, h.Preset)
	}
	fresh := func() (sched.Decider, error) { return f.decider(&h) }
	dec, err := fresh()
	if err != nil {
		return malformed(err)
	}
	r, err := engine.NewLogReader(log, path)
	if err != nil {
		return malformed(err)
	}
	recorder, hash := metrics.NewRecorder(0), new(engine.Hash)
	o := engine.ReplayOptions{From: began.Batch, Sinks: []engine.Sink{recorder, hash}}
	batches := uint64(1)
	o.Swap = func(batch uint64, v *sched.View, dec sched.Decider) (sched.Decider, error) {
		if batches = batch; !f.reload || batch == o.From {
			return dec, nil
		}
		next, faulty := fresh()
		if faulty != nil {
			return nil, faulty
		}
		return next, engine.SaveMemory(v, dec).Load(v, next)
	}
	err = engine.Replay(cmd.Context(), h, r.Records(), dec, o)
	switch astray := (*engine.Divergence)(nil); {
	case errors.As(err, &astray):
		return fmt.Errorf("%s: %w", path, err)
	case cmd.Context().Err() != nil:
		return cmd.Context().Err()
	case err != nil:
		return malformed(err)
	}
	doc := replayDoc{Schema: "trainyard.replay/v1", Log: path, Result: recorder.Result(h.System), Batches: batches, Taken: max(began.Batch, 1) - 1,
		LogHash: hash.Sum()}
	if f.json {
		return writeJSON(cmd.OutOrStdout(), doc)
	}
	return writeText(cmd.OutOrStdout(), fmt.Sprintf("%s: %d events of %d batches, %s: every decision of %s%s; log hash %s\n",
		path, recorder.Events, batches, counted(len(recorder.Jobs), "job"), h.System, sameSince(&began), doc.LogHash))
}

// sameSince says from where on decisions are the same.
func sameSince(began *engine.Record) string {
	if began.Batch == 0 {
		return " is the same"
	}
	by := "before it began anew"
	if was := engine.GaveWay(began.Event.Text); was != "" {
		by = "by another system (" + was + ")"
	}
	return fmt.Sprintf(" from event %d on is the same; what was decided before, %s, is taken as it stands", began.Event.Seq, by)
}

// rereadable returns a log that can be read twice, as that of a pipe cannot.
func rereadable(file *os.File) (io.ReadSeeker, error) {
	if _, err := file.Seek(0, io.SeekStart); err == nil {
		return file, nil
	}
	whole, err := io.ReadAll(file)
	return bytes.NewReader(whole), err
}

// renewal returns where the system of the log's header began to decide, at the last renewal; Batch 0 = it always did. The log is read
// from its start, and left there.
func renewal(log io.ReadSeeker, path string) (engine.Header, engine.Record, error) {
	r, err := engine.NewLogReader(log, path)
	if err != nil {
		return engine.Header{}, engine.Record{}, err
	}
	began, err := engine.LastRenewed(r.Records())
	if err == nil {
		_, err = log.Seek(0, io.SeekStart)
	}
	return r.Header(), began, err
}

// replayDoc is the document of replay --json. Names are only ever added.
type replayDoc struct {
	Schema  string         `json:"schema"`
	Log     string         `json:"log"`
	Result  metrics.Result `json:"result"`
	Batches uint64         `json:"batches"`
	Taken   uint64         `json:"taken_batches"` // the first ones, taken as they stand: another decided them
	LogHash string         `json:"log_hash"`
}

// decider returns a new system as the log says it was.
func (f *replayFlags) decider(h *engine.Header) (sched.Decider, error) {
	scores, err := readOptional("variability", f.variability, variability.ReadScores)
	if err != nil {
		return nil, err
	}
	k, err := knowledgeOf(h.Settings, scores)
	if err != nil {
		return nil, err
	}
	was := h.ShareLimit
	sys, err := beginAs(h, k)
	if err == nil && h.ShareLimit > was {
		err = fmt.Errorf("log: share_limit %d, but %s is for %d", was, h.System, h.ShareLimit)
	}
	return sys.Decider, err
}

// beginAs returns the system of real jobs if the log is theirs, else one that learns what the simulator knew.
func beginAs(h *engine.Header, k system.Knowledge) (system.System, error) {
	if manager.Wrote(h) {
		return manager.System(h, k)
	}
	k.Work = remaining.New()
	return system.Begin(h, k, nil)
}
