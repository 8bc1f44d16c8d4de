package system_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/model/interference"
	"github.com/trainyard/trainyard/model/power"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/system/key"
)

// allKnown is all that a system may know.
func allKnown() system.Knowledge {
	apps := map[string]speedup.App{}
	return system.Knowledge{Work: small().Oracle(), Scores: scores(), PerNode: 4, MostGPUs: 8, Budget: 6,
		Speeds: speedup.NewOracle(apps, 4, 8),
		Sets:   []interference.Set{}, Caps: func(string) power.Caps { return nil },
		Pools:   []sched.PoolSpec{{Name: "p", GPUs: 4, Max: 2}},
		Restart: func(string) time.Duration { return time.Minute },
		Slow:    func(sched.GPUID, sched.Time) (float64, sched.Time) { return 1, sched.Never }}
}

// elsewhereRead are declared keys that those who make the world read.
var elsewhereRead = []string{"month_zone"}

// Ensure that a system reads every key that it declares, under one setting or another, and no other key: one that is
// not declared could not be given.
func TestDeclaredKeysAreRead(t *testing.T) {
	variants := []map[string]string{nil, {"provision": "reserve", "reserve": "2"},
		{"month_budget": "100", "information": "price"},
		{"placement": "skew"}}
	for _, info := range system.Table() {
		read := map[string]bool{}
		for _, values := range variants {
			if values = maps.Clone(values); info.All().Find("information") == nil {
				delete(values, "information")
			}
			if slices.ContainsFunc(slices.Collect(maps.Keys(values)),
				func(k string) bool { return info.All().Find(k) == nil }) {
				continue
			}
			s, known := key.NewSettings(values), allKnown()
			if values["provision"] != "" {
				known.Budget = 0 // what is rented follows from one of the two
			}
			if _, err := info.Build(known, s, nil); err != nil {
				t.Errorf("%s %v: %v", info.Name, values, err)
			}
			for _, name := range s.Read() {
				read[name] = true
			}
		}
		for _, name := range info.KeyNames() {
			if !read[name] && !slices.Contains(elsewhereRead, name) {
				t.Errorf("%s declares the key %s and never reads it", info.Name, name)
			}
		}
		for name := range read {
			if info.All().Find(name) == nil && system.Beliefs.Find(name) == nil {
				t.Errorf("%s reads the key %s, which it does not declare", info.Name, name)
			}
		}
	}
}

// Ensure that a system which reads what it does not declare is refused.
func TestUndeclaredKeysAreRefused(t *testing.T) {
	s := key.NewSettings(nil).Bind(key.List{system.MinRun.Key}, false, nil)
	if system.MinRun.Get(s); s.Err() != nil {
		t.Errorf("%v, want a declared key read", s.Err())
	}
	if system.UserLimit.Get(s); s.Err() == nil ||
		s.Err().Error() != "the key user_limit is read though it is not declared" {
		t.Errorf("%v, want a key that is not declared refused", s.Err())
	}
}

// Ensure that every default, for real jobs and with PM scores as well, is a value that the key takes, and that what a
// key may be said to be is taken.
func TestDefaultsAreTaken(t *testing.T) {
	lists := []key.List{system.World}
	for _, info := range system.Table() {
		lists = append(lists, info.All())
	}
	for _, list := range lists {
		for _, k := range list {
			for _, value := range append([]string{k.Default, k.Live, k.Scored}, k.Choices...) {
				if err := k.Check(value); value != "" && err != nil {
					t.Errorf("default or choice of a key is refused: %v", err)
				}
			}
			if k.Check(k.Default) != nil && k.Default != "" || k.Doc == "" || k.Name == "" {
				t.Errorf("%+v: want a name, a meaning, and a default that is taken", k)
			}
			if k.Files != nil && k.Files.Want == "" {
				t.Errorf("key %s names files and does not say which are wanted", k.Name)
			}
		}
	}
}

// Ensure that a key is for real jobs on a machine, on a cluster, or only in simulations, as it is declared.
func TestWhereKeysMayBeGiven(t *testing.T) {
	for _, c := range []struct {
		system, key string
		where       key.Use
		taken       bool
	}{
		{"fifo", "keep", key.Simulation, true}, {"fifo", "keep", key.Cluster, true},
		{"fifo", "keep", key.Machine, false},
		{"boa", "keep", key.Machine, false}, {"boa", "budget", key.Machine, true},
		{"fifo", "restart_overhead", key.Simulation, true}, {"fifo", "restart_overhead", key.Machine, true},
		{"pal", "locality", key.Cluster, true},
		{"fifo", "report_noise", key.Simulation, true}, {"fifo", "report_noise", key.Machine, false},
		{"fifo", "report_noise", key.Cluster, false},
	} {
		info, err := system.Named(c.system)
		if err != nil {
			t.Fatal(err)
		}
		err = info.CheckKeys(map[string]string{c.key: ""}, c.where)
		if fault, _ := key.FaultOf(err); (err == nil) != c.taken || err != nil && fault != key.Abroad {
			t.Errorf("%s.%s at %d: %v, want it taken: %v", c.system, c.key, c.where, err, c.taken)
		}
	}
}

// Ensure that the key profiles takes logs and checkpoints, distinguished by their first bytes, and logs from what can
// be read in order alone.
func TestProfilesTakeCheckpoints(t *testing.T) {
	state, err := os.ReadFile("../model/checkpoint/testdata/state.pt")
	if err != nil {
		t.Fatal(err)
	}
	header := `{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},` +
		`"b":{"dtype":"F32","shape":[1],"data_offsets":[12,16]}}`
	tensors := string(binary.LittleEndian.AppendUint64(nil, uint64(len(header)))) + header + strings.Repeat("\x00", 16)
	const log = "# sizes {of a model}\ntensor a 300\ntensor b 100\n"
	files := map[string]string{"state.pt": string(state), "model.safetensors": tensors, "log": log,
		"9th": "#2345678{\n" + log, "pipe": log,
		"cut.safetensors": tensors[:len(tensors)-1], "empty": ""}
	open := func(path string) (io.ReadCloser, error) {
		if path == "pipe" {
			return io.NopCloser(strings.NewReader(files[path])), nil
		}
		return key.InMemory(files[path]), nil
	}
	for path, want := range map[string]string{"log": "0.75", "9th": "0.75", "pipe": "0.75",
		"model.safetensors": "0.75", "state.pt": "known",
		"cut.safetensors": "checkpoint: cut.safetensors: ", "empty": "skew: empty: "} {
		got := ""
		contents, err := system.Common.Read(map[string]string{"profiles": "net=" + path}, key.About{}, open)
		if err != nil {
			got = err.Error()
			if fault, _ := key.FaultOf(err); fault != key.Damaged {
				t.Errorf("%s: %v, want a damaged file", path, err)
			}
		} else {
			of := system.Profiles.Get(key.NewSettings(map[string]string{"profiles": path}).Bind(system.Common, false,
				contents))
			x, known := of("net")
			if got = fmt.Sprint(x); known && x > 0 && x <= 1 && want == "known" {
				got = want
			}
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

// Ensure that a user of other systems learns three keys for worth, and no more than ten that are not of every system
// and not about months. See docs/inside/adr/0049-keys-of-worth.md.
func TestWorthKeys(t *testing.T) {
	var own, apart []string
	worth, err := system.Named("worth")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range worth.Keys.Names() {
		others := 0
		for _, other := range system.Table() {
			if other.Name != "worth" && other.All().Find(name) != nil {
				others++
			}
		}
		if others == 0 {
			own = append(own, name)
		}
		if system.Common.Find(name) == nil && !strings.HasPrefix(name, "month_") {
			apart = append(apart, name)
		}
	}
	slices.Sort(own)
	if want := []string{"kwh_per_job_hour", "scores", "sizes"}; !slices.Equal(own, want) || len(apart) > 10 {
		t.Errorf("worth alone has %v, want %v; %v, want ten at most", own, want, apart)
	}
}
