package simulate

import (
	"slices"
	"testing"

	"github.com/trainyard/trainyard/model/interference"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/system/key"
)

// Ensure that the world reads every key that is declared to be of it, and none that is not declared.
func TestWorldKeysAreRead(t *testing.T) {
	info, err := system.Named("fifo")
	if err != nil {
		t.Fatal(err)
	}
	shared := &Sharing{Name: "f", Models: map[string]SoloUse{"": {}}, Sets: []interference.Set{
		{Place: interference.Place{GPU: "v100", Width: 8}, Models: []string{"a", "b"}, Slow: []float64{1.2, 1.2}}}}
	s := &Request{Trace: traceOf(row{0, 1, 1}), Cluster: mustLoad(t, "1x2"), System: "fifo", Scores: alike(2),
		Sharing: shared}
	set := key.NewSettings(nil).Bind(KeysOf(info, ""), true, nil)
	b := &built{cluster: s.Cluster}
	oracle, err := s.world(b, preset{}, info, set)
	if err == nil {
		_, err = s.knowledge(b, set, oracle)
	}
	if err != nil || set.Err() != nil {
		t.Fatal(err, set.Err())
	}
	for _, name := range system.World.Names() {
		if !slices.Contains(set.Read(), name) {
			t.Errorf("the key %s is declared and not read", name)
		}
	}
}

// Ensure that a preset's own keys have defaults that they take, and that a system does not take them without it.
func TestPresetKeys(t *testing.T) {
	for i := range Presets {
		for _, k := range Presets[i].Keys {
			if err := k.Check(k.Default); err != nil {
				t.Error(err)
			}
			info, err := system.Named(Presets[i].Systems()[0])
			if err != nil {
				t.Fatal(err)
			}
			given := map[string]string{k.Name: k.Default}
			if err := CheckKeys(info, Presets[i].Name, given); err != nil {
				t.Error(err)
			}
			if fault, ok := key.FaultOf(CheckKeys(info, "", given)); !ok || fault != key.Unknown {
				t.Errorf("%s is taken without the preset", k.Name)
			}
		}
	}
}
