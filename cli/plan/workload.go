package plan

import (
	"fmt"
	"math"
	"slices"

	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/model/price"
)

// workload is what plan plans for. Times are hours, rates per hour.
type workload struct {
	path  string
	types []gpuType // at least one
	money bool      // budgets are money per hour; otherwise GPUs
	kinds []jobKind

	warnings []string // about the file, not errors
}

// gpuType is a kind of GPU and what one costs.
type gpuType struct {
	name  string  // "" = the only one there is, at price 1
	price float64 // per hour
}

// jobKind is a class of jobs.
type jobKind struct {
	name    string
	rate    float64 // jobs per hour
	weight  float64
	restart float64 // hours
	most    int     // GPUs
	epochs  []stage
}

// stage is an epoch, or a run of epochs that are alike.
type stage struct {
	size float64 // hours on one GPU of speed 1
	on   []curve // by GPU type
}

// curve says how fast something runs on GPUs of one type.
type curve struct {
	speed  float64   // of one GPU; 0 = it cannot run on these
	law    price.Law // for any number of GPUs; nil = only on those of the table
	widths []int     // of the table, ascending
	speeds []float64
}

// at returns the speed on k GPUs, 0 = it cannot run so.
func (c *curve) at(k int) float64 {
	if c.law != nil {
		return c.speed * c.law.Speed(float64(k))
	}
	if i, ok := slices.BinarySearch(c.widths, k); ok {
		return c.speed * c.speeds[i]
	}
	return 0
}

// rate returns the arrivals of all classes per hour.
func (w *workload) rate() float64 {
	sum := 0.0
	for i := range w.kinds {
		sum += w.kinds[i].rate
	}
	return sum
}

// weighted reports whether some jobs are worth more than others.
func (w *workload) weighted() bool {
	return slices.ContainsFunc(w.kinds, func(k jobKind) bool { return k.weight != w.kinds[0].weight })
}

// classes returns the workload with whole numbers of GPUs.
func (w *workload) classes() []price.Class {
	list := make([]price.Class, len(w.kinds))
	for i := range w.kinds {
		list[i] = w.class(&w.kinds[i])
	}
	return list
}

func (w *workload) class(k *jobKind) price.Class {
	c := price.Class{Name: k.name, Rate: k.rate, Weight: k.weight, Restart: k.restart,
		Times: make([][]float64, len(k.epochs))}
	for typ := range w.types {
		for _, gpus := range k.widths(typ) {
			c.Configs = append(c.Configs, price.Config{Type: typ, GPUs: gpus, Price: w.types[typ].price})
			for e := range k.epochs {
				t := math.Inf(1)
				if s := k.epochs[e].on[typ].at(gpus); s > 0 {
					t = k.epochs[e].size / s
				}
				c.Times[e] = append(c.Times[e], t)
			}
		}
	}
	return c
}

// widths returns the numbers of GPUs of a type on which some epoch can run, ascending.
func (k *jobKind) widths(typ int) []int {
	var list []int
	for e := range k.epochs {
		c := &k.epochs[e].on[typ]
		switch {
		case c.speed == 0:
		case c.law != nil:
			for gpus := 1; gpus <= k.most; gpus++ {
				list = append(list, gpus)
			}
		default:
			list = append(list, c.widths...)
		}
	}
	slices.Sort(list)
	list = slices.Compact(list)
	n, _ := slices.BinarySearch(list, k.most+1)
	return list[:n]
}

// smooth returns the workload with fractions of GPUs, epoch by epoch in the order of classes.
func (w *workload) smooth() ([]price.Smooth, error) {
	var work []price.Smooth
	for i := range w.kinds {
		k := &w.kinds[i]
		if k.restart > 0 {
			return nil, term.Usagef("--continuous and class %s with restart_seconds: fractions of GPUs know no "+
				"restarts; want one of them", k.name)
		}
		for e := range k.epochs {
			s := price.Smooth{Rate: k.rate, Weight: k.weight, Size: k.epochs[e].size}
			for typ, c := range k.epochs[e].on {
				if kind, ok := w.kind(k, typ, &c); ok {
					s.Choices = append(s.Choices, kind)
				}
			}
			work = append(work, s)
		}
	}
	return work, nil
}

// kind returns a curve as one that takes fractions, and false where nothing can run.
func (w *workload) kind(k *jobKind, typ int, c *curve) (price.Kind, bool) {
	kind := price.Kind{Type: typ, Price: w.types[typ].price, Speed: c.speed, Law: c.law}
	if c.law != nil && k.most < maxWidth {
		kind.Most = float64(k.most)
	}
	if c.law == nil {
		n, _ := slices.BinarySearch(c.widths, k.most+1)
		if n == 0 {
			return kind, false
		}
		kind.Law = price.NewTable(c.widths[:n], c.speeds[:n])
	}
	return kind, c.speed > 0
}

// unit names what budgets are counted in.
func (w *workload) unit() string {
	if w.money {
		return "per hour"
	}
	return "GPUs"
}

// name says which type runs, where there are several.
func (w *workload) name(typ int) string {
	if len(w.types) == 1 {
		return ""
	}
	return w.types[typ].name
}

// String describes the workload.
func (w *workload) String() string {
	return fmt.Sprintf("%s: %s; jobs per hour: %.4g", w.path, classCount(len(w.kinds)), w.rate())
}

func classCount(n int) string {
	if n == 1 {
		return "1 class"
	}
	return fmt.Sprintf("%d classes", n)
}
