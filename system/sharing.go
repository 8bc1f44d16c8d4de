package system

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/trainyard/trainyard/model/footprint"
	"github.com/trainyard/trainyard/model/interference"
	"github.com/trainyard/trainyard/stage/share"
	"github.com/trainyard/trainyard/system/eaco"
	"github.com/trainyard/trainyard/system/key"
)

// The keys of EaCO.
var (
	keyUse = key.Positive(1, "a number in (0, 1]", "u_threshold", formatted(share.DefaultThreshold),
		"use of a GPU, in (0, 1], above which no one joins its jobs")
	keyMemory = key.Positive(1, "a number in (0, 1]", "mem_threshold", formatted(share.DefaultThreshold),
		"share of its memory in use at the peak, in (0, 1], above which no one joins its jobs")
	keySlow = key.New("slowdown_limit", "1.10",
		"how much slower than alone a job without deadline may become, >= 1; inf = as published", parseSlow)
	keyMostJobs = key.New("max_jobs", strconv.Itoa(share.DefaultMost), "jobs on a GPU at most, 1 to 8", parseMostJobs)
	keyPatience = key.Positive(maxPatience, "a number > 0, at most 1e6", "patience", formatted(share.DefaultPatience),
		"a trial ends at the latest after so many times the time it should take at worst")
	keyExclusive = key.New("exclusive_priority", "1", "jobs of that priority and above share with no one",
		parsePriority)
	keyLate = key.Choice("late", "admit",
		"jobs that would miss their deadline even alone: admit them alone, or wait (as published)", "admit", "wait")
	keyParallel = key.New("model_parallel", "",
		"MODEL,...: models that spread over their GPUs, so that memory is added up; * = all (as published)",
		parseModels)
	keyHistory = key.Choice("history", "learned",
		"what is known of sets at first: learned = nothing, tables = those of --interference", "learned", "tables")
	// ShareMemory says where there is memory for several jobs.
	ShareMemory = key.Choice("share_memory", "stated", "which jobs fit on a GPU together: stated = those "+
		"whose memory, where it is stated, fits; figures = those of which each states gpu_memory_gb or was measured "+
		"to have so much at most, all with 5 % to spare", "stated", shareFigures).LivesSince(4, shareFigures)
	keyPairs = keyHistory.As("", keyHistory.Doc+" (default where there are tables)")

	pairKeys = key.List{keyPairs.Key, ShareMemory.Key}
	eacoKeys = key.List{keyUse.Key, keyMemory.Key, keySlow.Key, keyMostJobs.Key, keyPatience.Key, keyExclusive.Key,
		keyLate.Key,
		keyParallel.Key, keyHistory.Key, ShareMemory.Key}
)

// maxPatience keeps times inside 64 bits.
const maxPatience = 1e6

func parseSlow(text string) (float64, error) {
	x, err := key.ParseNumber(inf, "a number >= 0 or inf")(text)
	if err == nil && x < 1 {
		err = errors.New("a number >= 1 or inf")
	}
	return x, err
}

func parseMostJobs(text string) (int, error) {
	x, err := parseWhole(text)
	if err == nil && (x < 1 || x > interference.MaxSet) {
		err = fmt.Errorf("a whole number from 1 to %d", interference.MaxSet)
	}
	return x, err
}

func parsePriority(text string) (int32, error) {
	x, err := parseWhole(text)
	if err == nil && int32(x) < 1 {
		err = errors.New("a whole number > 0")
	}
	return int32(x), err
}

func parseWhole(text string) (int, error) {
	x, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || x < 0 {
		return 0, errors.New("a whole number >= 0")
	}
	return x, nil
}

func parseModels(text string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	models := strings.Split(text, ",")
	if slices.Contains(models, "") {
		return nil, errors.New("MODEL,... or *")
	}
	return models, nil
}

// sharing returns what a system that shares GPUs knows of jobs and sets; tables says that it is given the tables of
// sets unless the key history says otherwise.
func sharing(history key.Of[string], tables bool) func(Knowledge, *key.Settings) (eaco.Known, error) {
	return func(k Knowledge, s *key.Settings) (eaco.Known, error) {
		known := eaco.Known{Work: k.Work, Peaks: k.Peaks}
		if k.Work == nil {
			return known, errNoWork
		}
		known.Restart = k.restart(s)
		past, given := &interference.History{}, history.Given(s)
		if history.Get(s) == "tables" || tables && !given {
			if k.Sets == nil && given {
				return known, errors.New("history=tables, want tables of sets: --interference")
			}
			if err := past.Seed(k.Sets); err != nil {
				return known, err
			}
		}
		if limit, err := capLimit(k, s); err == nil && limit != nil {
			known.Capped = limit.Slowdown
		}
		known.Learner = interference.NewLearner(past)
		return known, nil
	}
}

// shareFigures has jobs share GPUs by figures alone.
const shareFigures = "figures"

// peaks has a system whose jobs share GPUs by figures learn how much memory they have.
func (i *Info) peaks(k *Knowledge, s *key.Settings) {
	shares := i.Keys.Find(ShareMemory.Name) != nil && (i.Stages == nil || k.Sets != nil)
	if shares && ShareMemory.Get(s) == shareFigures {
		k.Peaks = footprint.New()
		k.Learn = append(slices.Clone(k.Learn), k.Peaks)
	}
}

// eacoSystem is EaCO.
func eacoSystem(k eaco.Known, _ Facts, s *key.Settings) (System, error) {
	p := eaco.Params{Known: k, Use: keyUse.Get(s), Memory: keyMemory.Get(s), Slow: keySlow.Get(s),
		Most:     keyMostJobs.Get(s),
		Patience: keyPatience.Get(s), Alone: int64(keyExclusive.Get(s)), LateWait: keyLate.Get(s) == "wait",
		Parallel: keyParallel.Get(s),
		Class:    classOf(s), UserGPUs: UserLimit.Get(s), Unsaved: unsaved(s)}
	if s.Err() != nil {
		return System{}, s.Err()
	}
	if Priority.Get(s) == PriorityIgnored {
		p.Alone = math.MaxInt64
	}
	d, err := eaco.New(p)
	return System{Decider: d, ShareLimit: p.Most}, err
}

// paired is a system that pairs jobs; seeded says that it draws. The throughputs of pairs are given to it, as they are
// to Gavel.
func paired(r eaco.PairRule, seeded bool) Maker[System] {
	return given(sharing(keyPairs, true), func(k eaco.Known, _ Facts, s *key.Settings) (System, error) {
		seed := uint64(0)
		if seeded {
			seed = uint64(Seed.Get(s))
		}
		d, err := eaco.NewPairs(k, r, seed, UserLimit.Get(s), classOf(s))
		return System{Decider: d, ShareLimit: 2}, err
	})
}
