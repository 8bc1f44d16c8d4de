package lint

import (
	"path"
	"slices"
	"strings"
	"testing"
)

func TestBaseNames(t *testing.T) { judge(t, "base-names", baseNames(repository(t))) }

// sameKind are base names that files in several packages have because each holds the same kind of thing.
var sameKind = map[string]string{
	"device":     "a GPU as a device of its node",
	"doc":        "what a package is for",
	"main":       "the start of a program",
	"arrivals":   "laws by which jobs arrive",
	"attempt":    "one attempt of a job",
	"batch":      "batch sizes",
	"boa":        "the system BOA, or what is measured of it",
	"caps":       "limits of power",
	"change":     "what a user changes of a job",
	"checkpoint": "checkpoints of a job",
	"client":     "the client of the API",
	"cluster":    "the nodes and their GPUs",
	"controller": "a controller",
	"driver":     "a driver of plans",
	"eaco":       "the system EaCO, or what is measured of it",
	"elastic":    "the elastic systems, or what is measured of them",
	"event":      "one event",
	"explain":    "why a job waits",
	"fifo":       "first come, first served",
	"forecaster": "what says when a job will start",
	"gittins":    "the Gittins index",
	"hash":       "what identifies content",
	"heap":       "a heap",
	"history":    "a recorded past",
	"hull":       "a convex hull",
	"job":        "a job",
	"learned":    "what is learned from finished jobs",
	"ledger":     "who holds which GPU",
	"logs":       "output of a job",
	"loop":       "the loop of a published simulator",
	"memory":     "saved parts of a Decider",
	"meter":      "what is measured while running",
	"metrics":    "figures for those who watch",
	"models":     "models that are published, and their names",
	"moment":     "a copy of how all stands",
	"node":       "a node",
	"optimus":    "the system Optimus",
	"oracle":     "what only the simulated world knows",
	"pal":        "the system PAL, or what is measured of it",
	"place":      "where the GPUs of a gang are",
	"pod":        "a pod",
	"pollux":     "the system Pollux, its trace or its goodput",
	"pool":       "a pool of nodes that are rented",
	"probe":      "measuring a job before it runs",
	"problem":    "what is asked to be solved, or went wrong",
	"process":    "a process",
	"profile":    "a profile of a model",
	"progress":   "progress that jobs report",
	"published":  "what a published simulator does",
	"rent":       "GPUs that are rented",
	"replay":     "a recording played again",
	"scores":     "performance scores of GPUs",
	"serve":      "a server's start",
	"settings":   "values of --set",
	"sharing":    "jobs that share GPUs",
	"status":     "the status of an object of Kubernetes",
	"steps":      "training steps",
	"store":      "what outlives the process",
	"stragglers": "GPUs that are slow for a while",
	"stream":     "a sequence that is read as it comes",
	"submit":     "a job's way in",
	"sync":       "a driver's Sync",
	"system":     "which systems there are",
	"tiresias":   "the system Tiresias, or its trace",
	"tokens":     "tokens",
	"trace":      "a trace of jobs",
	"verify":     "checks of -tags invariants",
	"why":        "why a job waits",
	"widths":     "how many GPUs a job gets",
}

// baseNames returns the base names of files that several packages have and that no row says to be one kind of thing:
// who searches for a name should find one thing.
func baseNames(tr *tree) []finding {
	where := map[string][]string{}
	for _, f := range tr.code {
		base := strings.TrimSuffix(path.Base(f.name), ".go")
		if !f.isTest() && sameKind[base] == "" {
			where[base] = append(where[base], f.folder())
		}
	}
	var found []finding
	for base, folders := range where {
		if len(folders) > 1 {
			found = append(found, finding{at: base + ".go", what: "in " + strings.Join(folders, ", "), name: base})
		}
	}
	slices.SortFunc(found, func(a, b finding) int { return strings.Compare(a.at, b.at) })
	return found
}

func TestBaseNamesFinds(t *testing.T) {
	tr, err := readTree(mapFS(map[string]string{
		"a/teller.go": "package a\n", "b/teller.go": "package b\n", "c/teller_test.go": "package c\n",
		"a/doc.go": "package a\n", "b/doc.go": "package b\n",
		"a/x.go": "package a\n", "b/x_test.go": "package b\n", "b/y.go": "package b\n",
	}))
	if err != nil {
		t.Fatal(err)
	}
	got := baseNames(tr)
	if len(got) != 1 || got[0].at != "teller.go" || got[0].what != "in a, b" {
		t.Errorf("found %v, want teller.go in a, b", got)
	}
}
