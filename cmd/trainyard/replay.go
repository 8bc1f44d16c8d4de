package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/manager"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/sched"
)

// replayFlags are the flags of replay as given.
type replayFlags struct {
	reload bool
	json   bool
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
	fresh := func() (sched.Decider, error) { return manager.Decider(h.System, systemKeys(h), nil) }
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

// systemKeys are the settings of a log that are the system's, not those of a simulated world.
func systemKeys(h engine.Header) map[string]string {
	keys := make(map[string]string)
	for name, value := range h.Settings {
		if defaultOf(name) == "" {
			keys[name] = value
		}
	}
	return keys
}
