package allocate

import "github.com/trainyard/trainyard/sched"

// Paying has another Rule divide, and leaves who holds GPUs at that width unless a change pays for its restart: within
// the horizon it must have done more by Claim.Move at the new width than at the old. What someone needs is given up
// all the same.
//
// Deviation: the rules that it is made for were published for restarts that cost nothing. Of a real job a restart costs
// what it is measured to cost, and a GPU more may be worth less.
type Paying struct{ Rule }

var _ Rule = Paying{}

// Divide takes back what does not pay, first what was given, then, from what that leaves, what was taken; both in the
// order of ranks.
func (p Paying) Divide(v *sched.View, dst []int, claims []Claim, gpus int) []int {
	from, free := len(dst), gpus
	dst = p.Rule.Divide(v, dst, claims, gpus)
	widths := dst[from:]
	for _, k := range widths {
		free -= k
	}
	for i := range claims {
		if c := &claims[i]; c.Held > 0 && widths[i] > c.Held && !c.pays(widths[i]) {
			free += widths[i] - c.Held
			widths[i] = c.Held
		}
	}
	for i := range claims {
		if c := &claims[i]; widths[i] > 0 && widths[i] < c.Held && c.Held-widths[i] <= free && !c.pays(widths[i]) {
			free -= c.Held - widths[i]
			widths[i] = c.Held
		}
	}
	return dst
}

// pays reports whether another width than the one held is worth the restart. One that may no longer be held always is.
func (c *Claim) pays(width int) bool {
	return c.Held > c.Max || c.Held < c.Min || c.S[width]*c.Move > c.Stay
}
