package plan

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/internal/inputfile"
	"github.com/trainyard/trainyard/internal/strictyaml"
	"github.com/trainyard/trainyard/internal/suggest"
	"github.com/trainyard/trainyard/model/price"
)

// Limits of a class table.
const (
	maxWorkload = 1 << 20 // bytes
	maxWidth    = 1024    // GPUs of a job whose curve is a formula, unless it has fewer
)

// parseWorkload reads a table of classes, see docs/guide/plans.md. Errors have the form "workload: FILE:LINE:COLUMN:
// what,
// want request".
func parseWorkload(yaml []byte, path string) (*workload, error) {
	r := &workloadReader{Reader: &strictyaml.Reader{Prefix: "workload", File: path}, w: &workload{path: path}}
	doc := r.Document(yaml, maxWorkload, "classes")
	if r.Err() == nil {
		r.document(doc)
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	return r.w, nil
}

// workloadReader reads one table.
type workloadReader struct {
	*strictyaml.Reader
	w *workload
}

// document reads GPU types before classes, wherever they stand.
func (r *workloadReader) document(doc ast.Node) {
	var types, classes ast.Node
	keep := func(dst *ast.Node) func(string, ast.Node) { return func(_ string, n ast.Node) { *dst = n } }
	r.Mapping(doc, "the document", []strictyaml.Field{
		strictyaml.Key("gpu_types", keep(&types)),
		strictyaml.Key("classes", keep(&classes)),
	})
	if types != nil {
		r.w.money = true
		r.list("gpu_types", types, func(n ast.Node) { r.gpuType(n) })
	} else {
		r.w.types = []gpuType{{price: 1}}
	}
	if classes == nil {
		r.Fail(doc, "no classes, want a list of at least one")
		return
	}
	r.list("classes", classes, func(n ast.Node) { r.class(n) })
}

// list calls f for each element of a list until something is wrong.
func (r *workloadReader) list(key string, n ast.Node, f func(ast.Node)) {
	list, ok := n.(*ast.SequenceNode)
	if !ok || len(list.Values) == 0 {
		r.Fail(n, "%s, want a list of at least one", strictyaml.Describe(key, n))
		return
	}
	for _, item := range list.Values {
		if r.Err() == nil {
			f(item)
		}
	}
}

func (r *workloadReader) gpuType(n ast.Node) {
	var t gpuType
	r.Mapping(n, "a GPU type", []strictyaml.Field{
		strictyaml.Key("name", strictyaml.Text(r.Reader, &t.name)),
		strictyaml.Key("price", r.positive(&t.price)),
	})
	switch {
	case t.name == "":
		r.Fail(n, "a GPU type without a name, want one")
	case r.typeNamed(t.name) >= 0:
		r.Fail(n, "name %s given again, want GPU types of different names", strictyaml.Quote(t.name))
	case t.price == 0:
		r.Fail(n, "GPU type %s without a price, want %s", t.name, positiveWanted)
	}
	r.w.types = append(r.w.types, t)
}

func (r *workloadReader) typeNamed(name string) int {
	return slices.IndexFunc(r.w.types, func(t gpuType) bool { return t.name == name })
}

func (r *workloadReader) class(n ast.Node) {
	k := jobKind{weight: 1, most: maxWidth}
	seconds := 0.0
	var whole stageText
	var epochs ast.Node
	r.Mapping(n, "a class", append(r.stageFields(&whole),
		strictyaml.Key("name", strictyaml.Text(r.Reader, &k.name)),
		strictyaml.Key("rate_per_hour", r.positive(&k.rate)),
		strictyaml.Key("weight", r.positive(&k.weight)),
		strictyaml.Key("restart_seconds", strictyaml.Figure(r.Reader, &seconds)),
		strictyaml.Key("max_gpus", strictyaml.Whole(r.Reader, &k.most, 1, maxWidth)),
		strictyaml.Key("epochs", func(_ string, n ast.Node) { epochs = n }),
	))
	k.restart = seconds / 3600
	switch {
	case k.name == "":
		r.Fail(n, "a class without a name, want one")
	case slices.ContainsFunc(r.w.kinds, func(o jobKind) bool { return o.name == k.name }):
		r.Fail(n, "name %s given again, want classes of different names", strictyaml.Quote(k.name))
	case k.rate == 0:
		r.Fail(n, "class %s without rate_per_hour, want %s", k.name, positiveWanted)
	case (epochs == nil) == (whole.size == 0):
		r.Fail(n, "class %s with both size_hours and epochs or neither, want one of them", k.name)
	}
	if r.Err() != nil {
		return
	}
	if epochs == nil {
		k.epochs = []stage{r.stage(n, &k, &whole, &whole)}
	} else {
		r.list("epochs", epochs, func(n ast.Node) {
			var e stageText
			r.Mapping(n, "an epoch", r.stageFields(&e))
			if e.size == 0 {
				r.Fail(n, "an epoch without size_hours, want %s", positiveWanted)
			}
			k.epochs = append(k.epochs, r.stage(n, &k, &e, &whole))
		})
	}
	r.w.kinds = append(r.w.kinds, k)
}

// stageText is what a class and an epoch may both say.
type stageText struct {
	size  float64
	curve *curve         // nil = not said
	types map[int]*curve // by GPU type, where said; a nil curve in it = the class's, at the speed given
	speed map[int]float64
}

func (r *workloadReader) stageFields(s *stageText) []strictyaml.Field {
	return []strictyaml.Field{
		strictyaml.Key("size_hours", r.positive(&s.size)),
		strictyaml.Key("speedup", func(key string, n ast.Node) { s.curve = r.speedup(key, n) }),
		strictyaml.Key("gpu_types", func(key string, n ast.Node) { r.stageTypes(key, n, s) }),
	}
}

// stageTypes reads the speed of one GPU of each type, perhaps with a speedup of its own.
func (r *workloadReader) stageTypes(key string, n ast.Node, s *stageText) {
	s.types, s.speed = map[int]*curve{}, map[int]float64{}
	r.Each(n, key, "GPU types to speeds", func(name *token.Token, value ast.Node) {
		typ := r.typeNamed(name.Value)
		if typ < 0 {
			var names []string
			for _, t := range r.w.types {
				names = append(names, t.name)
			}
			r.FailAt(name.Position, "GPU type %s%s, want one of the document's gpu_types", strictyaml.Quote(name.Value),
				suggest.Hint(name.Value, names))
			return
		}
		speed := 1.0
		if _, ok := value.(*ast.MappingNode); ok {
			r.Mapping(value, name.Value, []strictyaml.Field{
				strictyaml.Key("speed", r.positive(&speed)),
				strictyaml.Key("speedup", func(key string, n ast.Node) { s.types[typ] = r.speedup(key, n) }),
			})
		} else {
			r.positive(&speed)(name.Value, value)
		}
		s.speed[typ] = speed
	})
}

// stage puts together what an epoch says and what its class does.
func (r *workloadReader) stage(n ast.Node, k *jobKind, own, class *stageText) stage {
	s := stage{size: own.size, on: make([]curve, len(r.w.types))}
	types, speed, common := own.types, own.speed, own.curve
	if common == nil {
		common = class.curve
	}
	if types == nil {
		types, speed = class.types, class.speed
	}
	if r.w.money && types == nil {
		r.Fail(n, "class %s without gpu_types, want the speed of one GPU of each type it can use", k.name)
		return s
	}
	if !r.w.money {
		speed = map[int]float64{0: 1}
	}
	for typ := range s.on {
		if speed[typ] == 0 {
			continue
		}
		c := types[typ]
		if c == nil {
			c = common
		}
		if c == nil {
			r.Fail(n, "class %s without speedup, want one", k.name)
			return s
		}
		s.on[typ] = *c
		s.on[typ].speed = speed[typ]
	}
	r.reach(n, k, &s)
	return s
}

// reach refuses an epoch that max_gpus leaves nothing of.
func (r *workloadReader) reach(n ast.Node, k *jobKind, s *stage) {
	if !slices.ContainsFunc(s.on, func(c curve) bool {
		return c.speed > 0 &&
			(c.law != nil || c.widths[0] <= k.most)
	}) {
		r.Fail(n, "class %s has no speed on %d GPUs or fewer, want a width up to max_gpus", k.name, k.most)
	}
}

// speedup reads a curve: one of the laws, or a table.
func (r *workloadReader) speedup(key string, n ast.Node) *curve {
	c, given := &curve{}, 0
	law := func(field string, most float64, f func(x float64) price.Law) func(string, ast.Node) {
		return func(key string, n ast.Node) {
			given++
			x := -1.0
			r.Mapping(n, key, []strictyaml.Field{strictyaml.Key(field, func(key string, n ast.Node) {
				var ok bool
				if x, ok = strictyaml.Decimal(n); !ok || x > most {
					r.Fail(n, "%s, want a number from 0 to %v", strictyaml.Describe(key, n), most)
				}
			})})
			if x < 0 {
				r.Fail(n, "%s without %s, want it", key, field)
			}
			c.law = f(x)
		}
	}
	r.Mapping(n, key, []strictyaml.Field{
		strictyaml.Key("amdahl", law("parallel", maxShare,
			func(x float64) price.Law { return price.Amdahl{Parallel: x} })),
		strictyaml.Key("power", law("exponent", maxShare,
			func(x float64) price.Law { return price.Power{Exponent: x} })),
		strictyaml.Key("table", func(key string, n ast.Node) { given++; r.table(key, n, c) }),
	})
	if given != 1 {
		r.Fail(n, "%d speedup curves, want one of amdahl, power, table", given)
	}
	return c
}

// maxShare keeps jobs from being worth any number of GPUs, as they are where all of them runs in parallel.
const maxShare = 0.9999

// table reads speeds by number of GPUs, in any order; they may well fall somewhere.
func (r *workloadReader) table(key string, n ast.Node, c *curve) {
	speeds := map[int]float64{}
	r.Each(n, key, "GPUs to speeds", func(k *token.Token, value ast.Node) {
		gpus, err := strconv.Atoi(k.Value)
		if err != nil || gpus < 1 || gpus > maxWidth || strconv.Itoa(gpus) != k.Value {
			r.FailAt(k.Position, "%s GPUs, want a whole number from 1 to %d", strictyaml.Quote(k.Value), maxWidth)
			return
		}
		speed := 0.0
		r.positive(&speed)(k.Value, value)
		speeds[gpus] = speed
		c.widths = append(c.widths, gpus)
	})
	if len(c.widths) == 0 {
		r.Fail(n, "%s, want GPUs to speeds", strictyaml.Describe(key, n))
	}
	slices.Sort(c.widths)
	for _, gpus := range c.widths {
		c.speeds = append(c.speeds, speeds[gpus])
	}
}

const positiveWanted = "a number from 1e-6 to 1e9"

// positive reads a number above 0.
func (r *workloadReader) positive(dst *float64) func(string, ast.Node) {
	return func(key string, n ast.Node) {
		x, ok := strictyaml.Decimal(n)
		if !ok || x < 1e-6 || x > 1e9 {
			r.Fail(n, "%s, want %s", strictyaml.Describe(key, n), positiveWanted)
			return
		}
		*dst = x
	}
}

// readWorkload reads the file of --workload.
func readWorkload(path string) (*workload, error) {
	if err := inputfile.NoFolder("workload", path); err != nil {
		return nil, err
	}
	text, err := strictyaml.ReadFile(path, maxWorkload)
	if err != nil {
		return nil, fmt.Errorf("workload: %w", err)
	}
	w, err := parseWorkload(text, path)
	if err != nil {
		return nil, term.Malformed(err)
	}
	return w, nil
}
