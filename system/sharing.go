package system

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/trainyard/trainyard/model/interference"
	"github.com/trainyard/trainyard/system/eaco"
)

// eacoKeys are the keys of EaCO.
var eacoKeys = []Key{
	{"u_threshold", "0.6", "use of a GPU, in (0, 1], above which nobody joins its jobs"},
	{"mem_threshold", "0.6", "share of its memory in use at the peak, in (0, 1], above which nobody joins its jobs"},
	{"slowdown_limit", "1.10", "how much slower than alone a job without deadline may become, >= 1; inf = as published"},
	{"max_jobs", "4", "jobs on a GPU at most, 1 to 8"},
	{"patience", "2", "a trial ends at the latest after so many times the time it should take at worst"},
	{"exclusive_priority", "1", "jobs of that priority and above share with nobody"},
	{"late", "admit", "jobs that would miss their deadline even alone: admit them alone, or wait (as published)"},
	{"model_parallel", "", "MODEL,...: models that spread over their GPUs, so that memory is added up; * = all (as published)"},
	keyHistory,
}

var keyHistory = Key{"history", "learned", "what is known of sets at first: learned = nothing, tables = those of --interference"}

var keyPairs = Key{keyHistory.Name, "", keyHistory.Doc + " (default where there are tables)"}

// sharing returns what a system that shares GPUs knows of jobs and sets.
func sharing(k Knowledge, s *Settings, def string) (eaco.Knowledge, error) {
	known := eaco.Knowledge{Work: k.Work}
	if k.Work == nil {
		return known, errNoWork
	}
	known.Restart = k.restart(s)
	history := &interference.History{}
	if s.OneOf("history", def, "learned", "tables") == "tables" {
		if k.Sets == nil && s.Has("history") {
			return known, errors.New("history=tables, want tables of sets: --interference")
		}
		if err := history.Seed(k.Sets); err != nil {
			return known, err
		}
	}
	if limit, err := capLimit(k, s); err == nil && limit != nil {
		known.Capped = limit.Slowdown
	}
	known.Learner = interference.NewLearner(history)
	return known, nil
}

// eacoSystem is EaCO.
func eacoSystem(k Knowledge, s *Settings) (System, error) {
	known, err := sharing(k, s, "learned")
	if err != nil {
		return System{}, err
	}
	p := eaco.Params{Knowledge: known, Use: s.threshold("u_threshold"), Memory: s.threshold("mem_threshold"),
		Slow: s.Float("slowdown_limit", eaco.DefaultSlow), Most: s.Int("max_jobs", eaco.DefaultMost), Patience: s.Float("patience", eaco.DefaultPatience),
		Alone: int32(s.Int("exclusive_priority", 1)), LateWait: s.OneOf("late", "admit", "admit", "wait") == "wait", UserGPUs: s.Int("user_limit", 0)}
	if s.Has("exclusive_priority") && p.Alone < 1 {
		s.wrong("exclusive_priority", s.Text("exclusive_priority"), "a whole number > 0")
	}
	if s.Has("slowdown_limit") && !(p.Slow >= 1) {
		s.wrong("slowdown_limit", s.Text("slowdown_limit"), "a number >= 1 or inf")
	}
	if s.Has("max_jobs") && (p.Most < 1 || p.Most > interference.MaxSet) {
		s.wrong("max_jobs", s.Text("max_jobs"), fmt.Sprintf("a whole number from 1 to %d", interference.MaxSet))
	}
	if s.Has("patience") && !(p.Patience > 0 && p.Patience <= maxPatience) {
		s.wrong("patience", s.Text("patience"), "a number > 0, at most 1e6")
	}
	if text := s.Text("model_parallel"); text != "" {
		p.Parallel = strings.Split(text, ",")
		if slices.Contains(p.Parallel, "") {
			s.wrong("model_parallel", text, "MODEL,... or *")
		}
	}
	if s.Err() != nil {
		return System{}, s.Err()
	}
	d, err := eaco.New(p)
	return System{Decider: d, ShareLimit: p.Most}, err
}

// maxPatience keeps times inside 64 bits.
const maxPatience = 1e6

// threshold returns a number in (0, 1].
func (s *Settings) threshold(key string) float64 {
	const wish = "a number in (0, 1]"
	x := s.number(key, eaco.DefaultThreshold, 1, wish)
	if x == 0 {
		s.wrong(key, s.values[key], wish)
	}
	return x
}

// paired is a system that pairs jobs. The throughputs of pairs are given to it, as they are to Gavel.
func paired(r eaco.PairRule) func(Knowledge, *Settings) (System, error) {
	return func(k Knowledge, s *Settings) (System, error) {
		known, err := sharing(k, s, "tables")
		if err != nil {
			return System{}, err
		}
		d, err := eaco.NewPairs(known, r, uint64(s.Int("seed", 0)), s.Int("user_limit", 0))
		return System{Decider: d, ShareLimit: 2}, err
	}
}
