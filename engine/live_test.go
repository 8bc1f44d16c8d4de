package engine

// Live returns the number of jobs that have arrived and are not done.
func (s *State) Live() int { return s.live }
