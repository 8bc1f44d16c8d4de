package browser

import "testing"

// Ensure that what is under way counts on a live page, also where nothing has happened since a page was open before:
// people have the GPU time that their jobs hold, work goes on, and series reach to the end of the axis.
func TestUnderWay(t *testing.T) {
	h := serveLive(t)
	h.submit("jobs: [{name: a, user: ann, gpus: 4, command: [sleep, '600']}]")
	h.await("the job runs", func() bool { return h.jobs()[0].State == "running" })
	for range 2 {
		b := open(t, 600, 900, false)
		b.visit(h.enter())
		b.goTo("#/people")
		b.until(`document.querySelector("#people tbody td:nth-child(4) [data-value]")?.dataset.value > 0`)
		b.goTo("#/time")
		b.until(`/went on in [1-9]/.test(document.querySelector("#main").textContent)`)
		if top := value[float64](b, `document.querySelector("header").offsetHeight`); top > 130 {
			t.Errorf("the head of a page of 600 pixels is %v high, want four lines at most", top)
		}
		h.own(b)
	}
}
