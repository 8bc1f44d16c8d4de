package past

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/cli/client"
	"github.com/trainyard/trainyard/cli/inputs"
	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/manager"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/metrics/timeline"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/simulate"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/system/key"
)

// whatifFlags are the flags of whatif as given.
type whatifFlags struct {
	to      client.Target
	log     string
	systems []string
	sets    []string
	json    bool
	report  term.ReportFlags
	reports bool // how far it has come
}

// whatifDefault are the systems that are tried where none is named: they need no knowledge but that of the log.
var whatifDefault = []string{"fifo", "fifo-easy", "las", "tiresias-las", "srtf"}

func newWhatif() *cobra.Command {
	var f whatifFlags
	cmd := &cobra.Command{
		Use:   "whatif",
		Short: "Say how jobs would have fared under other systems",
		Long: `Takes what the manager of this machine recorded (or a log of --events-out),
and simulates it under other systems: the jobs as they came, with the work
they turned out to be, on the same GPUs. The first line is what happened. The
second simulates the system that decided, which shows how far simulations are
from what happens, unless several decided, one after the other: then it is the
last one. The column change is by how much the mean JCT of the others differs
from that simulation; where that is off by more than 5 % in mean JCT, a ? marks
what differs from it by no more than that, which means nothing. A JCT is the
time from when a job is submitted to its end; queued is the part of it without
GPUs; busy is the share of the GPUs' time in which work went on.

Pauses, cancels and failures are not repeated; a job that was edited is from the
start as it was wanted last. Systems that ask how long jobs
take know it, which the one that decided did not: they come out better than
they would be.

Exit code 5 says that none of the systems asked for can be simulated.`,
		Example: `  trainyard whatif
  trainyard whatif --system srtf,las --log log.jsonl --json`,
		Args: term.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return f.whatif(cmd) },
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	f.to.AddFlags(cmd)
	fs.StringVar(&f.log, "log", "", "log `FILE.jsonl` instead of that of the manager")
	fs.StringSliceVar(&f.systems, "system", nil, "`NAMES` of systems (default: "+strings.Join(whatifDefault, ",")+")")
	fs.StringArrayVar(&f.sets, "set", nil, "key of a system, as in simulate: `SYSTEM.KEY=VALUE`")
	fs.BoolVar(&f.json, "json", false, "one JSON document instead of a table")
	f.report.Define(fs)
	fs.BoolVar(&f.reports, "progress", false, "a line of JSON on stderr before each simulation")
	term.CompleteFlag(cmd, "system", term.ListOf(system.Names))
	return cmd
}

func (f *whatifFlags) whatif(cmd *cobra.Command) error {
	names := f.systems
	if len(names) == 0 {
		names = slices.Clone(whatifDefault)
	}
	infos, err := inputs.SystemsNamed(names)
	if err != nil {
		return err
	}
	settings, err := inputs.ParseSets(f.sets, infos, simulated)
	if err != nil {
		return err
	}
	if bad := f.report.CheckInput(term.PathUse{What: "log", Path: f.log}); bad != nil {
		return bad
	}
	file, err := f.report.Create()
	if err != nil {
		return err
	}
	defer file.Discard()
	h, err := f.history(cmd)
	if err != nil {
		return err
	}
	list, itself, err := candidates(h, infos, settings)
	if err != nil {
		return err
	}
	f.follow(cmd, h)
	rows, err := h.Compare(cmd.Context(), list)
	if err != nil {
		return err
	}
	asked := rows[2:] // behind what happened, and the system that decided
	if itself {
		asked = rows[1:]
	}
	if err := someSimulated(asked); err != nil {
		return err
	}
	doc := whatifDoc(h, rows)
	if file != nil {
		if err := file.Fill(h.report(cmd, rows, doc, f.report.Anonymous), cmd.ErrOrStderr()); err != nil {
			return err
		}
		if err := file.Commit(); err != nil {
			return err
		}
	}
	if f.json {
		return term.WriteJSON(cmd.OutOrStdout(), doc)
	}
	return term.WriteText(cmd.OutOrStdout(), whatifText(h, rows, term.WidthOf(cmd.OutOrStdout())))
}

// follow has a line written before each simulation of h, where that is asked for.
func (f *whatifFlags) follow(cmd *cobra.Command, h *History) {
	if !f.reports {
		return
	}
	h.Progress = func(done, of int, system string) {
		fmt.Fprintf(cmd.ErrOrStderr(), `{"simulated":%d,"of":%d,"system":%q}`+"\n", done, of, system)
	}
}

// simulated are the keys of a system in a simulation.
func simulated(info *system.Info) key.List { return simulate.KeysOf(info, "") }

// candidates are what is simulated: first the system that decided; itself says that it was asked for, as it was.
func candidates(h *History, infos []*system.Info,
	settings []map[string]string) (list []Candidate, itself bool, err error) {
	list = []Candidate{h.Itself()}
	for i, info := range infos {
		set := settings[i]
		if manager.Wrote(&h.Header) { // as a manager of this machine would have it
			if set, err = system.LiveDefaultsOf(&h.Header, info.Name, set); err != nil {
				return nil, false, err
			}
		}
		if info.Name == h.Header.System && len(settings[i]) == 0 {
			itself = true
			continue
		}
		list = append(list, Candidate{System: info.Name, Settings: set})
	}
	return list, itself, nil
}

// someSimulated returns why none of the rows was simulated, if that is so.
func someSimulated(rows []Row) error {
	var why []string
	for i := range rows {
		if rows[i].Err == nil {
			return nil
		}
		why = append(why, rows[i].Err.Error())
	}
	return term.Refusedf("whatif: nothing that was asked for can be simulated, want a system that needs no more "+
		"than the log: %s", strings.Join(why, "; "))
}

// history reads the log that is meant.
func (f *whatifFlags) history(cmd *cobra.Command) (*History, error) {
	if f.log != "" {
		file, err := os.Open(f.log)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		return readHistory(file, f.log, false, f.line())
	}
	c, err := f.to.Dial()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	r, w := io.Pipe()
	defer r.Close()
	broke := make(chan error, 1)
	go func() {
		cause := client.ApiError(c.WriteLog(cmd.Context(), w))
		broke <- cause
		_ = w.CloseWithError(cause)
	}()
	h, err := readHistory(r, "log of the manager", true, f.line())
	_ = r.Close()
	if cause := <-broke; err != nil && term.ExitCode(cause) == term.ExitUnreachable {
		return nil, cause
	}
	return h, err
}

// line returns what notes who held which GPU when; nil = no one asks.
func (f *whatifFlags) line() *timeline.Timeline {
	if f.report.Path == "" {
		return nil
	}
	return new(timeline.Timeline)
}

// readHistory reads a log; a live one is that of a manager that goes on.
func readHistory(log io.Reader, name string, live bool, line *timeline.Timeline) (*History, error) {
	r, err := eventlog.NewReader(log, name)
	if err != nil {
		return nil, term.Malformed(err)
	}
	now, head := sched.Time(0), r.Header()
	if origin, wrong := time.Parse(time.RFC3339Nano, head.Origin); live && wrong == nil {
		now = sched.Time(time.Since(origin))
	}
	h, err := ReadHistory(r, now, line)
	if err != nil {
		return nil, term.Malformed(fmt.Errorf("%s: %w", name, err))
	}
	return h, nil
}

// whatifJSON is the document of whatif --json. Names are only ever added.
type whatifJSON struct {
	Schema   string    `json:"schema"`
	Ended    int       `json:"ended"`
	Censored int       `json:"censored"`
	NeverRan int       `json:"never_ran"`
	Changed  int       `json:"changed"` // jobs that are as their users wanted them last
	StartSec float64   `json:"start_s"`
	StopSec  float64   `json:"stop_s"`
	Restart  float64   `json:"restart_s"`
	Earlier  []string  `json:"earlier_systems,omitempty"` // that decided before the last one did, with their settings
	Rows     []rowJSON `json:"rows"`
}

type rowJSON struct {
	System      string            `json:"system"`
	Settings    map[string]string `json:"settings"`
	Recorded    bool              `json:"recorded"`
	Error       string            `json:"error,omitempty"`
	Jobs        int               `json:"jobs"`
	MeanJCT     float64           `json:"mean_jct_s"`
	P95JCT      float64           `json:"p95_jct_s"`
	MeanQueue   float64           `json:"mean_queue_s"`
	Makespan    float64           `json:"makespan_s"`
	Busy        float64           `json:"busy"`
	Preemptions int64             `json:"preemptions"`
	SimError    *simErrorJSON     `json:"sim_error,omitempty"`
	// WithinError: its mean JCT is no further from that simulated of the system that decided than that is off.
	WithinError bool `json:"within_error,omitempty"`
	// Paired is how far its mean JCT is from that simulated of the system that decided, with its interval.
	Paired *metrics.Paired `json:"paired,omitempty"`
	// Prices is what a GPU of each type was worth over time, under a system that puts a price on them.
	Prices []Price `json:"prices,omitempty"`
}

// simErrorJSON is how far the simulation of the system that decided is from the record, relative to it.
type simErrorJSON struct {
	MeanJCT   float64 `json:"mean_jct"`
	P95JCT    float64 `json:"p95_jct"`
	MeanQueue float64 `json:"mean_queue"`
	Makespan  float64 `json:"makespan"`
	PerJob    float64 `json:"per_job_median"`
}

func whatifDoc(h *History, rows []Row) whatifJSON {
	doc := whatifJSON{Schema: "trainyard.whatif/v1", Ended: h.Ended, Censored: h.Censored, NeverRan: h.NeverRan,
		Changed:  h.Changed,
		StartSec: h.Measured.Start.Seconds(), StopSec: h.Measured.Stop.Seconds(), Restart: h.Measured.Restart.Seconds(),
		Earlier: h.Earlier}
	for i := range rows {
		r := &rows[i]
		row := rowJSON{System: r.System, Settings: r.Settings, Recorded: r.Recorded, Jobs: r.Jobs, MeanJCT: r.MeanJCT,
			P95JCT:    r.P95JCT,
			MeanQueue: r.MeanQueue, Makespan: r.Makespan, Busy: r.Busy, Preemptions: r.Preemptions}
		row.WithinError = withinError(r, itself(rows))
		row.Paired, row.Prices = r.Paired, r.Prices
		if row.Settings == nil {
			row.Settings = map[string]string{}
		}
		if r.Err != nil {
			row.Error = r.Err.Error()
		}
		if d := r.Error; d != nil {
			row.SimError = &simErrorJSON{d.MeanJCT, d.P95JCT, d.MeanQueue, d.Makespan, d.PerJob}
		}
		doc.Rows = append(doc.Rows, row)
	}
	return doc
}
