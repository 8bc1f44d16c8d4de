package past

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/cli/inputs"
	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/internal/inputfile"
	"github.com/trainyard/trainyard/manager"
	"github.com/trainyard/trainyard/memory"
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
	report      term.ReportFlags
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
it decided; what others decided before is taken as it stands. A log of several
parts, as trainyard-kube --log writes them, is replayed part by part. LOG - is
the standard input.`,
		Example: `  trainyard run jobs.yaml --events-out log.jsonl && trainyard replay log.jsonl`,
		Args:    term.Exactly("LOG.jsonl"),
		RunE:    func(cmd *cobra.Command, args []string) error { return f.replay(cmd, args[0]) },
	}
	fs := cmd.Flags()
	fs.BoolVar(&f.reload, "reload", false, "save the system's memory before every batch and go on with a new one "+
		"that is given it")
	fs.StringVar(&f.variability, "variability", "",
		"PM scores that the system knew: `FILE` with gpu,node,pm_classA,...")
	fs.BoolVar(&f.json, "json", false, "one JSON document instead of a line")
	f.report.Define(fs)
	return cmd
}

func (f *replayFlags) replay(cmd *cobra.Command, path string) error {
	if path == "-" {
		path = "/dev/stdin"
	}
	if err := f.report.CheckInput(term.PathUse{What: "log", Path: path}); err != nil {
		return err
	}
	out, err := f.report.Create()
	if err != nil {
		return err
	}
	defer out.Discard()
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	log, err := rereadable(file)
	if err != nil {
		return err
	}
	parts, hash, err := f.parts(cmd.Context(), log, path)
	if err != nil && term.ExitCode(err) != term.ExitMalformed {
		return err
	}
	// A report has what can be read of a damaged log.
	if _, failed := log.Seek(0, io.SeekStart); failed != nil {
		return cmp.Or(err, failed)
	}
	stderr := cmd.ErrOrStderr()
	if err != nil { // which says it
		stderr = nil
	}
	failed := inputs.CommitRecorded(out, log, path, term.CommandOf(cmd), stderr)
	if bad := cmp.Or(err, failed); bad != nil {
		return bad
	}
	if f.json {
		return term.WriteJSON(cmd.OutOrStdout(), replayDocOf(path, parts, hash.Sum()))
	}
	if len(parts) > 1 {
		text := ""
		for i := range parts {
			text += fmt.Sprintf("%s: line %d: %s\n", path, parts[i].Line, parts[i])
		}
		return term.WriteText(cmd.OutOrStdout(), fmt.Sprintf("%s%s: %d parts; log hash %s\n", text, path, len(parts),
			hash.Sum()))
	}
	return term.WriteText(cmd.OutOrStdout(), fmt.Sprintf("%s: %s; log hash %s\n", path, parts[0], hash.Sum()))
}

// parts replays all parts of a log, and returns the hash of its events.
func (f *replayFlags) parts(ctx context.Context, log io.ReadSeeker, path string) ([]replayPart, *eventlog.Hash, error) {
	began, err := renewals(log, path)
	if err != nil {
		return nil, nil, term.Malformed(err)
	}
	r, err := eventlog.NewReader(log, path)
	if err != nil {
		return nil, nil, term.Malformed(err)
	}
	list, hash := make([]replayPart, len(began)), new(eventlog.Hash)
	for i := range list {
		if list[i], err = f.part(ctx, r, path, began[i], hash); err != nil {
			return nil, nil, ofLog(ctx, path, r.Header().System, err)
		}
		if _, err := r.Another(); err != nil {
			return nil, nil, term.Malformed(err)
		}
	}
	return list, hash, nil
}

// part replays the part of a log that r has come to, which started to decide at a record.
func (f *replayFlags) part(ctx context.Context, r *eventlog.Reader, path string, began eventlog.Record,
	hash *eventlog.Hash) (replayPart, error) {
	h := r.Header()
	p := replayPart{Line: r.Line(), System: h.System, Batches: 1, Taken: max(began.Batch, 1) - 1, began: began}
	if h.Preset != "" {
		return p, term.Usagef("%s: of preset %s, want a log without one", path, h.Preset)
	}
	fresh := func() (sched.Decider, error) { return f.decider(&h) }
	dec, err := fresh()
	if err != nil {
		return p, err
	}
	o := engine.ReplayOptions{From: began.Batch, Sinks: []eventlog.Sink{hash, &p}}
	if h.State == nil { // else figures would be of a part of each job's life
		p.recorder = metrics.NewRecorder(0)
		o.Sinks = append(o.Sinks, p.recorder)
	}
	o.Swap = func(batch uint64, v *sched.View, dec sched.Decider) (sched.Decider, error) {
		if p.Batches = batch; !f.reload || batch == o.From {
			return dec, nil
		}
		next, faulty := fresh()
		if faulty != nil {
			return nil, faulty
		}
		return next, memory.Save(v, dec).Load(v, next)
	}
	return p, engine.Replay(ctx, h, r.Part(), dec, o)
}

// foreknown says of a log that is decided otherwise what a simulation under its system knew and the log does not have;
// "" = nothing.
func foreknown(name string) string {
	s, err := system.Named(name)
	if err != nil || !strings.Contains(s.Assumes, "work") {
		return ""
	}
	return fmt.Sprintf("\n%s assumes %s: a simulation knows that and its log does not, so that the log of one cannot "+
		"be replayed", name, s.Assumes)
}

// ofLog says of which log an error is, which was decided by a system.
func ofLog(ctx context.Context, path, by string, err error) error {
	switch astray, coded := (*engine.Divergence)(nil), (*term.CodedError)(nil); {
	case errors.As(err, &coded):
		return err
	case errors.As(err, &astray):
		return fmt.Errorf("%s: %w%s", path, err, foreknown(by))
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return term.Malformed(err)
}

// sameSince says from where on decisions are the same.
func sameSince(began *eventlog.Record) string {
	if began.Batch == 0 {
		return " is the same"
	}
	by := "before it started again"
	if was := eventlog.GaveWay(began.Event.Text); was != "" {
		by = "by another system (" + was + ")"
	}
	return fmt.Sprintf(" from event %d on is the same; what was decided before, %s, is taken as it stands",
		began.Event.Seq, by)
}

// rereadable returns a log that can be read twice, as that of a pipe cannot.
func rereadable(file *os.File) (io.ReadSeeker, error) {
	if _, err := file.Seek(0, io.SeekStart); err == nil {
		return file, nil
	}
	whole, err := io.ReadAll(file)
	return bytes.NewReader(whole), err
}

// renewals returns where the system of each part's header started to decide, at the last renewal; Batch 0 = it always
// did. The log is read from its start, and left there.
func renewals(log io.ReadSeeker, path string) (list []eventlog.Record, err error) {
	r, err := eventlog.NewReader(log, path)
	for another := true; another && err == nil; another, err = r.Another() {
		began, bad := eventlog.LastRenewed(r.Part())
		if bad != nil {
			return nil, bad
		}
		list = append(list, began)
	}
	if err == nil {
		_, err = log.Seek(0, io.SeekStart)
	}
	return list, err
}

// replayPart is what came of a part of a log. It is a sink that counts.
type replayPart struct {
	Line    int    `json:"line"` // of its header
	System  string `json:"system"`
	Events  int    `json:"events"`
	Batches uint64 `json:"batches"`
	Taken   uint64 `json:"taken_batches"`

	jobs     int // known at its end
	began    eventlog.Record
	recorder *metrics.Recorder // nil = it does not start with an empty cluster
}

// Log counts an event.
func (p *replayPart) Log(v *sched.View, _ *sched.Event) {
	p.Events++
	p.jobs = len(v.Jobs)
}

// String says how much was decided again.
func (p replayPart) String() string {
	return fmt.Sprintf("%d events of %d batches, %s: every decision of %s%s", p.Events, p.Batches,
		term.Counted(p.jobs, "job"), p.System, sameSince(&p.began))
}

// replayDoc is the document of replay --json. Names are only ever added.
type replayDoc struct {
	Schema  string          `json:"schema"`
	Log     string          `json:"log"`
	Result  *metrics.Result `json:"result,omitempty"` // of a log of one part that starts with an empty cluster
	Batches uint64          `json:"batches"`
	Taken   uint64          `json:"taken_batches"` // the first ones, taken as they stand: another decided them
	LogHash string          `json:"log_hash"`
	Parts   []replayPart    `json:"parts,omitempty"` // of a log of several
}

func replayDocOf(path string, parts []replayPart, hash string) replayDoc {
	doc := replayDoc{Schema: "trainyard.replay/v1", Log: path, LogHash: hash}
	for i := range parts {
		doc.Batches, doc.Taken = doc.Batches+parts[i].Batches, doc.Taken+parts[i].Taken
	}
	if len(parts) > 1 {
		doc.Parts = parts
	} else if p := &parts[0]; p.recorder != nil {
		result := p.recorder.Result(p.System)
		doc.Result = &result
	}
	return doc
}

// decider returns a new system as the log says it was.
func (f *replayFlags) decider(h *eventlog.Header) (sched.Decider, error) {
	scores, err := inputfile.Read("variability", f.variability, variability.ReadScores)
	if err != nil {
		return nil, err
	}
	k, err := inputs.KnowledgeOf(h.System, h.Settings, scores)
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
func beginAs(h *eventlog.Header, k system.Knowledge) (system.System, error) {
	if manager.Wrote(h) {
		return system.Live(h, k)
	}
	k.Work = remaining.New()
	return system.Begin(h, k, nil)
}

// Verbs returns the verbs about a recorded past.
func Verbs() []*cobra.Command {
	return []*cobra.Command{
		newWhatif(),
		newReplay(),
	}
}
