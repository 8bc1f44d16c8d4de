package arena

// perPage is how many values a page has.
const perPage = 128

// Pages is values by number, of which few are in use at a time: those that no longer are take next to nothing. The zero
// value has none in use.
type Pages[T any] struct {
	list  []*page[T]
	spare *page[T] // that has none in use
}

type page[T any] struct {
	used int
	of   [perPage]T
}

// At returns value i if it is in use; what it returns otherwise is nil or the zero value, not to be changed.
func (p *Pages[T]) At(i int) *T {
	if n := i / perPage; n < len(p.list) && p.list[n] != nil {
		return &p.list[n].of[i%perPage]
	}
	return nil
}

// Use has value i be in use, which is not, and returns it: the zero value.
func (p *Pages[T]) Use(i int) *T {
	n := i / perPage
	for n >= len(p.list) {
		p.list = append(p.list, nil)
	}
	if p.list[n] == nil {
		if p.list[n], p.spare = p.spare, nil; p.list[n] == nil {
			p.list[n] = new(page[T])
		}
	}
	p.list[n].used++
	return &p.list[n].of[i%perPage]
}

// Drop ends the use of value i.
func (p *Pages[T]) Drop(i int) {
	n := i / perPage
	x := p.list[n]
	clear(x.of[i%perPage : i%perPage+1])
	if x.used--; x.used == 0 {
		p.list[n], p.spare = nil, x
	}
}
