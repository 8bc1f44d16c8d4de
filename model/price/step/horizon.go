package step

import "fmt"

// Bounds of a horizon, in seconds, and the most that load counts for.
const (
	shortest = 60
	longest  = 7 * 24 * 3600
	mostLoad = 0.95
)

// Drains returns the seconds in which a backlog of GPU-seconds drains on so many GPUs, where jobs go on to arrive at a
// load (what arrives over what the GPUs can do, >= 0): backlog / (gpus (1 - load)), within a minute and a week. Without
// GPUs it is a week.
func Drains(backlog float64, gpus int, load float64) float64 {
	if gpus <= 0 {
		return longest
	}
	return max(shortest, min(backlog/float64(float64(gpus)*(1-min(load, mostLoad))), longest))
}

// Levels are the horizons that a system knows, each 2^(1/4) times the one before: prices need not be asked for again
// whenever the backlog changes a little.
var Levels = func() []float64 {
	list := []float64{shortest}
	for x := float64(shortest); x < longest; {
		x = float64(x * 1.189207115002721)
		list = append(list, x)
	}
	return list
}()

// Level returns the level that stands for a horizon, where the last was at. It stays while the horizon is within a
// whole step of it.
func Level(at int, horizon float64) int {
	const half, whole = 1.0905077326652577, 1.189207115002721
	if at >= 0 && horizon < float64(Levels[at]*whole) && horizon > Levels[at]/whole {
		return at
	}
	level := 0
	for level+1 < len(Levels) && horizon >= float64(Levels[level]*half) {
		level++
	}
	return level
}

// Constants names the constants of horizons, with their values.
func Constants() string {
	return fmt.Sprintf("Shortest:%v Longest:%v MostLoad:%v", shortest, longest, mostLoad)
}
