package main

import (
	"errors"
	"fmt"
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
future.`,
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
	r, err := engine.NewLogReader(file, path)
	if err != nil {
		return malformed(err)
	}
	h := r.Header()
	if h.Preset != "" {
		return usagef("%s: of preset %s, want a log without one", path, h.Preset)
	}
	fresh := func() (sched.Decider, error) { return f.decider(&h) }
	dec, err := fresh()
	if err != nil {
		return malformed(err)
	}
	recorder, hash := metrics.NewRecorder(0), new(engine.Hash)
	o := engine.ReplayOptions{Renew: fresh, Sinks: []engine.Sink{recorder, hash}}
	batches := uint64(1)
	o.Swap = func(batch uint64, v *sched.View, dec sched.Decider) (sched.Decider, error) {
		if batches = batch; !f.reload {
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
	return f.tell(cmd, path, h, recorder, batches, hash.Sum())
}

func (f *replayFlags) tell(cmd *cobra.Command, path string, h engine.Header, r *metrics.Recorder, batches uint64, hash string) error {
	result := r.Result(h.System)
	if f.json {
		return writeJSON(cmd.OutOrStdout(), replayDoc{"trainyard.replay/v1", path, result, batches, hash})
	}
	return writeText(cmd.OutOrStdout(), fmt.Sprintf("%s: %d events of %d batches, %s: every decision of %s is the same; log hash %s\n",
		path, r.Events, batches, counted(len(r.Jobs), "job"), h.System, hash))
}

// replayDoc is the document of replay --json. Names are only ever added.
type replayDoc struct {
	Schema  string         `json:"schema"`
	Log     string         `json:"log"`
	Result  metrics.Result `json:"result"`
	Batches uint64         `json:"batches"`
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
