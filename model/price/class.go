package price

import (
	"fmt"
	"math"
)

// Config is a number of GPUs of one type.
type Config struct {
	Type  int     // of GPU, as the caller numbers them
	GPUs  int     // > 0
	Price float64 // of one GPU for a unit of time; 0 = 1
}

// perTime returns what the configuration costs per unit of time.
func (c Config) perTime() float64 {
	if c.Price == 0 {
		return float64(c.GPUs)
	}
	return float64(c.GPUs) * c.Price
}

// Class is a kind of job, which goes through phases in order. Neither the distribution of sizes nor the arrival process
// beyond its rate plays a role.
type Class struct {
	Name    string
	Rate    float64     // arrivals per unit of time, > 0
	Weight  float64     // value of a unit of time of delay of one job; 0 = 1
	Restart float64     // time lost at the start and at each change of configuration, with the new GPUs held, >= 0
	Configs []Config    // that there are, all different
	Times   [][]float64 // Times[e][i]: mean time of phase e in Configs[i], > 0; +Inf = it cannot be run so
}

// Path is a configuration for each phase, as indices into Class.Configs.
type Path []int

func (c *Class) weight() float64 {
	if c.Weight == 0 {
		return 1
	}
	return c.Weight
}

// Validate says what is wrong with a class, by its name.
func (c *Class) Validate() error {
	switch {
	case !(c.Rate > 0) || math.IsInf(c.Rate, 1):
		return c.fail("rate %v, want > 0", c.Rate)
	case !(c.Weight >= 0) || math.IsInf(c.Weight, 1):
		return c.fail("weight %v, want >= 0", c.Weight)
	case !(c.Restart >= 0) || math.IsInf(c.Restart, 1):
		return c.fail("restart %v, want >= 0", c.Restart)
	case len(c.Configs) == 0:
		return c.fail("no configurations, want one")
	case len(c.Times) == 0:
		return c.fail("no phases, want one")
	}
	for _, k := range c.Configs {
		if k.GPUs <= 0 || !(k.Price >= 0) || math.IsInf(k.Price, 1) {
			return c.fail("%d GPUs at price %v, want > 0 and >= 0", k.GPUs, k.Price)
		}
	}
	for e, times := range c.Times {
		if err := c.checkTimes(e, times); err != nil {
			return err
		}
	}
	return nil
}

func (c *Class) checkTimes(e int, times []float64) error {
	if len(times) != len(c.Configs) {
		return c.fail("phase %d has %d times, want %d", e, len(times), len(c.Configs))
	}
	least := math.Inf(1)
	for i, t := range times {
		if !(t > 0) {
			return c.fail("phase %d takes %v on %d GPUs, want > 0", e, t, c.Configs[i].GPUs)
		}
		least = min(least, t)
	}
	if math.IsInf(least, 1) {
		return c.fail("phase %d cannot be run, want a configuration in which it can", e)
	}
	return nil
}

func (c *Class) fail(format string, args ...any) error {
	return fmt.Errorf("price: class %q: %s", c.Name, fmt.Sprintf(format, args...))
}

// validate checks all classes, of which there must be one.
func validate(classes []Class) error {
	if len(classes) == 0 {
		return fmt.Errorf("price: no classes, want one")
	}
	for i := range classes {
		if err := classes[i].Validate(); err != nil {
			return err
		}
	}
	return nil
}

// Along returns the cost and delay of a job that takes a path, restarts included. Option is 0.
func (c *Class) Along(path Path) Point {
	var p Point
	last := -1
	for e, i := range path {
		t := c.Times[e][i]
		if i != last {
			t += c.Restart
		}
		p.Delay += t
		p.Cost += float64(c.Configs[i].perTime() * t)
		last = i
	}
	return p
}

// points returns the points of phases from..to-1 done in one configuration, without restarts but for extra time.
func (c *Class) points(from, to int, extra float64) []Point {
	list := make([]Point, 0, len(c.Configs))
	for i := range c.Configs {
		t := extra
		for _, times := range c.Times[from:to] {
			t += times[i]
		}
		if !math.IsInf(t, 1) {
			list = append(list, Point{float64(c.Configs[i].perTime() * t), t, i})
		}
	}
	return list
}
