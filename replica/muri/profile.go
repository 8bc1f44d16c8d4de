package muri

import (
	"math"
	"slices"
)

// slower is what the released simulator multiplies every iteration by, for its own overhead.
const slower = 1.015

// Widths are the gang sizes that the released simulator has profiles of; others make it fail.
var Widths = [...]int{1, 2, 4, 8, 16, 32}

// Profile is what was measured of a model, by width as in Widths.
type Profile struct {
	Model     string
	Iteration [len(Widths)]float64 // milliseconds
	Start     [len(Widths)]float64 // seconds to start up
}

// Profiles lists the models of Muri's traces.
//
// Source: the released simulator: job_time_dict of jobs.py, overhead_dict of run_sim.py.
var Profiles = []Profile{
	{"vgg16", [...]float64{107, 191, 201, 214, 332, 336}, [...]float64{7, 7, 8, 9, 9, 10}},
	{"vgg19", [...]float64{109, 205, 212, 226, 302, 356}, [...]float64{7, 7, 8, 9, 10, 10}},
	{"resnet18", [...]float64{779, 881, 921, 1010, 1055, 1059}, [...]float64{4, 5, 5, 7, 7, 7}},
	{"shufflenet_v2_x1_0", [...]float64{798, 850, 886, 957, 1006, 1019}, [...]float64{4, 4, 5, 5, 7, 8}},
	{"bert", [...]float64{178, 195, 190, 192, 244, 260}, [...]float64{10, 10, 10, 10, 10, 10}},
	{"gpt2", [...]float64{426, 464, 433, 437, 491, 514}, [...]float64{10, 10, 10, 10, 10, 10}},
	{"a2c", [...]float64{517, 525, 533, 555, 567, 585}, [...]float64{38, 39, 39, 46, 46, 46}},
	{"dqn", [...]float64{490, 495, 505, 509, 525, 546}, [...]float64{5, 5, 6, 6, 8, 8}},
}

// ProfileOf returns the profile of a model.
func ProfileOf(model string) (Profile, bool) {
	i := slices.IndexFunc(Profiles, func(p Profile) bool { return p.Model == model })
	if i < 0 {
		return Profile{}, false
	}
	return Profiles[i], true
}

// Work is what a job of a duration in seconds has to do, and what a pass costs it, at the width Widths[w]: the whole
// iterations in the duration, each 1.5 % longer than measured. All rows of the released traces have that many
// iterations.
func (p Profile) Work(duration float64, w int) (iterations, iteration, overhead float64) {
	return math.Floor(math.Round(duration*1e3) / p.Iteration[w]), p.Iteration[w] * slower / 1000, p.Start[w]
}
