package system_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/allocate"
	"github.com/trainyard/trainyard/stage/place"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/system/key"
)

// Ensure that whatever learns or remembers in the stages of any system is known to the engine: that it is a stage
// itself or listed among the parts, not hidden inside a stage that wraps it. It would never hear of anything, and be
// lost with a crash.
func TestNothingLearnsUnheard(t *testing.T) {
	tr := small()
	for _, info := range system.Table() {
		if info.Stages == nil {
			continue
		}
		for _, settings := range []map[string]string{nil, {"placement": "skew", "pack_limit": "learned"},
			{"order": "tiresias-gittins"}} {
			if slices.ContainsFunc(keysOf(settings),
				func(key string) bool { return !slices.Contains(info.KeyNames(), key) }) {
				continue
			}
			var hidden []string
			look := func(st *pipeline.Stages) { hidden = unheard(st) }
			k := system.Knowledge{Work: tr.Oracle(), Scores: scores(), PerNode: 4, MostGPUs: 8, Budget: 6}
			if _, err := info.Build(k, key.NewSettings(settings), look); err != nil {
				t.Fatal(err)
			}
			if len(hidden) > 0 {
				t.Errorf("%s %v: hidden in its stages: %s", info.Name, settings, strings.Join(hidden, ", "))
			}
		}
	}
}

// Ensure that the test finds what is hidden.
func TestUnheardIsFound(t *testing.T) {
	learned, widest := place.NewLearnedSkew(nil), &allocate.Widest{}
	st := pipeline.Stages{Place: &place.OneType{By: learned},
		Allocate: &allocate.Divide{Rule: &allocate.Pollux{Seen: widest}}}
	if got, want := unheard(&st), []string{"*place.LearnedSkew", "*allocate.Widest"}; !slices.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
	if st.Learn = []sched.Observer{learned, widest}; len(unheard(&st)) > 0 {
		t.Errorf("found %v although listed", unheard(&st))
	}
}

func keysOf(settings map[string]string) (keys []string) {
	for key := range settings {
		keys = append(keys, key)
	}
	return keys
}

// unheard returns the types of what implements sched.Observer or sched.Memory inside the stages, and is not one of
// those that the engine looks at, nor inside one that implements the same and so can pass it on.
func unheard(st *pipeline.Stages) []string {
	s := search{known: map[uintptr]bool{}}
	stages := []any{st.Order, st.Place, st.Admit, st.Allocate}
	for _, l := range st.Learn {
		stages = append(stages, l)
	}
	for _, p := range st.Provision {
		stages = append(stages, p)
	}
	for _, stage := range stages {
		if v := reflect.ValueOf(stage); v.Kind() == reflect.Pointer {
			s.known[v.Pointer()] = true
		}
	}
	for _, stage := range append(stages, st.Move) {
		if v := reflect.ValueOf(stage); v.IsValid() {
			s.reports = [...]bool{v.Type().Implements(learning[0]), v.Type().Implements(learning[1])}
			s.inside(v, 0)
		}
	}
	return s.found
}

// search goes through values, unexported fields included.
type search struct {
	known   map[uintptr]bool // visible to the engine, or visited
	reports [2]bool          // by interface of learning: the stage looked at has it
	found   []string
}

var learning = [...]reflect.Type{reflect.TypeFor[sched.Observer](), reflect.TypeFor[sched.Memory]()}

// visit looks at a value held by a stage, then inside.
func (s *search) visit(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Interface:
		if !v.IsNil() {
			s.visit(v.Elem(), depth)
		}
		return
	case reflect.Pointer:
		if v.IsNil() || s.known[v.Pointer()] {
			return
		}
		s.known[v.Pointer()] = true
		for i, t := range learning {
			if v.Type().Implements(t) && !s.reports[i] {
				s.found = append(s.found, fmt.Sprint(v.Type()))
				break
			}
		}
	}
	s.inside(v, depth)
}

// inside looks at what a struct holds, behind pointers. Six levels are more than any stage has.
func (s *search) inside(v reflect.Value, depth int) {
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct || depth > 6 {
		return
	}
	for i := range v.NumField() {
		s.visit(v.Field(i), depth+1)
	}
}
