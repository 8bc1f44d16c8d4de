package published
type scaler struct{}
func (s *scaler) rescale(r *run) {}
