package price

// Paths returns the paths of a class that are best at some price, cheapest first, as a hull whose Option indexes paths.
// They depend neither on the rate nor on the weight.
//
// Between two of them the price at which both are equally good is tried; what is better there lies between them. That
// finds every path with two runs of the dynamic program for each, and the cheapest and the fastest exactly.
func (c *Class) Paths() (hull []Point, paths []Path) {
	s := search{class: c}
	first, last := s.try(0, 1), s.try(1, 0)
	s.found = append(s.found, first)
	if last.Cost > first.Cost && last.Delay < first.Delay {
		s.between(first, last)
		s.found = append(s.found, last)
	}
	return Hull(s.found), s.paths
}

// search looks for the paths of a class.
type search struct {
	class *Class
	table table
	found []Point
	paths []Path
}

// try returns the best path for given worths of delay and cost.
func (s *search) try(delay, cost float64) Point {
	path := s.table.best(s.class, delay, cost, Start, nil)
	p := s.class.Along(path)
	p.Option = len(s.paths)
	s.paths = append(s.paths, path)
	return p
}

// between finds the paths between a and b, of which b costs more.
func (s *search) between(a, b Point) {
	delay, cost := b.Cost-a.Cost, a.Delay-b.Delay
	m := s.try(delay, cost)
	level := float64(delay*a.Delay) + float64(cost*a.Cost)
	if float64(delay*m.Delay)+float64(cost*m.Cost) >= level*(1-equal) || m.Cost <= a.Cost || m.Cost >= b.Cost {
		s.paths = s.paths[:len(s.paths)-1]
		return
	}
	s.between(a, m)
	s.found = append(s.found, m)
	s.between(m, b)
}
