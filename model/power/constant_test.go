package power

// Constant returns the series that is value for ever.
func Constant(value float64) *Series {
	s := &Series{}
	s.add(0, value)
	return s
}
