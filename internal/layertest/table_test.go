package layertest

import "strings"

// row is one line of the table of layers. A package belongs to the first row with a matching pattern.
type row struct {
	layer    int
	patterns []string
}

// Patterns are folders below the module root: "x" is the package x alone, "x/*" everything below it, "x/..." both.
var rows = []row{
	{0, []string{"sched", "api"}},
	{1, []string{"model/...", "trace/...", "cluster/...", "memory", "explain", "api/site"}},
	{2, []string{"stage/...", "eventlog", "pipeline", "explain/text", "attempt/..."}},
	{3, []string{"engine/...", "metrics/..."}},
	{4, []string{"system/...", "replica/...", "driver/...", "host", "report/..."}},
	{5, []string{"whatif/...", "simulate/...", "host/hosttest"}},
	{6, []string{"manager/...", "api/server", "api/apitest", "cli/contexts"}},
	{7, []string{"cli/term", "cli/client", "cli/inputs"}},
	{8, []string{"cli/*"}},
	{9, []string{"cmd/*", "examples/*", "python"}},
	{anyLayer, leaves},
}

// anyLayer marks leaves: packages that every layer may import and that know the vocabulary at most.
const anyLayer = -1

var leaves = []string{"internal/*", "web/...", "tools/*"}

// pure is the decision core. All of it runs alike in the simulator, on one machine and on Kubernetes, and a recorded
// log must replay to the same plans.
var pure = []string{"sched", "model/...", "memory", "explain/...", "stage/...", "eventlog", "pipeline", "engine/...",
	"system/...", "replica/...",
	"metrics/..."}

// rule forbids packages that match from to import packages of this module that match to, whatever their layers.
type rule struct {
	from, to []string
	reason   string
}

var forbidden = []rule{
	{[]string{"sched", "internal/*", "web/...", "tools/*"}, thirdParty,
		"it stands below everything: what it imports, everything imports"},
	{[]string{"api"}, thirdParty,
		"it is the contract with programs: one that uses it links the standard library and no more"},
	{[]string{"engine/..."}, []string{"stage/...", "model/...", "system/...", "driver/..."},
		"the engine keeps state and order for any policy; it knows none, and drivers know it only by events and plans"},
	{[]string{"engine/..."}, []string{"pipeline", "explain/..."},
		"the loop serves any Decider: how one is made of stages, and how a wait is explained, is not its concern"},
	{[]string{"pipeline"}, []string{"engine/...", "eventlog"},
		"a pipeline decides from the View alone: it knows no loop and no log"},
	{[]string{"system/..."}, []string{"driver/..."},
		"a system decides from the View alone; knowing who carries it out would make the simulator and production " +
			"differ"},
	{[]string{"driver/..."}, []string{"system/...", "stage/..."},
		"a driver carries out plans of any system, and never decides"},
	{[]string{"system/*"}, []string{"system"},
		"the table of names knows the systems, not the reverse"},
	{[]string{"attempt/...", "api/...", "host/...", "manager/...", "whatif/...", "cli/...", "cmd/*", "examples/*",
		"driver/...",
		"stage/...", "system/...", "engine/...", "pipeline", "eventlog", "metrics/...", "model/...", "trace/..."},
		[]string{"replica/..."},
		"presets alone run replicas of released simulators, so that a result says which engine computed it"},
	{pure, []string{"internal/strictyaml"},
		"it opens files, and brings a YAML library"},
	{pure, []string{"trace/...", "cluster/..."},
		"readers do I/O, and trace holds the ground truth of jobs: what a policy may know must be visible in its " +
			"constructor"},
}

// thirdParty matches the packages that are neither of this module nor of the standard library.
var thirdParty = []string{"third-party"}

// exception allows what the layers would not.
type exception struct {
	from, to []string
	reason   string
}

// excused allows what a rule forbids.
var excused = []exception{
	{[]string{"internal/strictyaml"}, thirdParty,
		"it reads YAML by a library, for readers alone: pure packages must not import it"},
}

// A package may always import its own subfolders (system: its systems; system/x: system/x/y).
var exceptions = []exception{
	{[]string{"model/..."}, []string{"model/..."},
		"mathematics builds on mathematics: an index needs a distribution, a price needs a speedup curve"},
	{[]string{"system/key/keytest"}, []string{"system/key"},
		"a list of faults for tests knows the kinds of faults"},
	{[]string{"trace/..."}, []string{"cluster/...", "model/..."},
		"ground truth is a cluster's scores and a job's curves"},
	{[]string{"cluster/..."}, []string{"model/..."},
		"a node's scores and power are models"},
	{[]string{"internal/strictyaml"}, []string{"internal/suggest"},
		"an error about an unknown key names the one that was meant"},
	{[]string{"driver/local/..."}, []string{"driver/local/..."},
		"one driver cut into folders: a shim owns the processes of an attempt"},
	{[]string{"attempt/..."}, []string{"attempt/..."},
		"what a job runs says how its output is read"},
	{[]string{"report/recorded"}, []string{"report"},
		"the run in a log is a part of a report"},
	{[]string{"whatif/whatiftest"}, []string{"whatif"},
		"a kit for tests makes the moments that they ask about"},
	{[]string{"manager/..."}, []string{"manager/..."},
		"one service cut into folders"},
	{[]string{"cli/client", "cli/inputs"}, []string{"cli/term", "cli/inputs"},
		"what verbs share is written with the errors and formats that all of them have"},
}

// forbiddenStd are the standard library's packages, with all below them, that pure packages must not import.
var forbiddenStd = []struct{ pkg, reason string }{
	{"os", "no I/O: files belong to trace, cluster, drivers and cmd"},
	{"net", "no I/O: the network belongs to drivers and the manager"},
	{"log", "return errors and events: drivers and cmd log"},
	{"sync", "the core is one goroutine: nothing in it is shared"},
	{"crypto/rand", "decisions repeat: randomness comes from a seeded source"},
	{"hash/maphash", "decisions repeat: its seed differs between runs"},
	{"embed", "no I/O: pass data in"},
}

// forbiddenNames are the names that pure packages must not use. Where only is false they are those listed; where it is
// true, all functions but those listed.
var forbiddenNames = []struct {
	pkg    string
	except bool
	names  string
	reason string
}{
	{"time", false, "Now Since Until Sleep After AfterFunc Tick NewTimer NewTicker Local LoadLocation",
		"time comes from the View"},
	{"math/rand", true, "New NewSource NewZipf Rand Source Source64 Zipf",
		"randomness comes from a seeded source, never from the global one"},
	{"math/rand/v2", true, "New NewPCG NewChaCha8 NewZipf Rand Source PCG ChaCha8 Zipf",
		"randomness comes from a seeded source, never from the global one"},
}

// goStatementReason is why pure packages start no goroutine.
const goStatementReason = "the core is one goroutine: the order of its work is part of the result"

// matches says whether the folder matches one of the patterns.
func matches(folder string, patterns []string) bool {
	for _, p := range patterns {
		if base, ok := strings.CutSuffix(p, "/..."); ok && (folder == base || strings.HasPrefix(folder, base+"/")) {
			return true
		}
		if base, ok := strings.CutSuffix(p, "/*"); ok && strings.HasPrefix(folder, base+"/") {
			return true
		}
		if folder == p {
			return true
		}
	}
	return false
}

// layerOf returns the layer of a folder, and false when the table does not know it.
func layerOf(folder string) (int, bool) {
	for _, r := range rows {
		if matches(folder, r.patterns) {
			return r.layer, true
		}
	}
	return 0, false
}
