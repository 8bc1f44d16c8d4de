package trace

import (
	"math"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/trainyard/trainyard/internal/shareddata"
)

// realities are published traces and what a generated one of equal length may differ from it: two-sample distances of
// Kolmogorov and Smirnov, as printed for the models that the generator has.
//
// Reference: specification of traces, 3.1 (model comparison) and 3.2 (the best column of each class).
var realities = []struct {
	site, path              string
	origin                  string // of the file's times
	from, to                string // core window
	gaps, hourly, durations float64
	classes                 []classBound
}{
	{"philly", "philly/philly_gpu_jobs.csv.gz", "2017-08-14T23:27:00", "2017-10-03T00:00:00", "2017-12-15T00:00:00",
		.055, .116, .023,
		[]classBound{{1, 1, .024}, {2, 3, .018}, {4, 7, .030}, {8, 8, .016}, {9, 16, .018}, {17, MaxGPUs, .049}}},
	{"venus", "venus/venus_gpu_jobs.csv.gz", "2020-03-18T04:01:39", "2020-04-01T00:00:00", "2020-09-27T00:00:00", .082,
		.077, .009,
		[]classBound{{1, 1, .020}, {2, 3, .027}, {4, 7, .012}, {8, 8, .019}, {9, 16, .014}, {17, MaxGPUs, .047}}},
	// its origin is not known, so any will do; on the first two days there are 164 jobs
	{"pai", "pai/pai_terminated_tasks_sample.csv.gz", "2020-07-01T00:00:00", "2020-07-03T00:00:00",
		"2020-10-01T00:00:00", .134, .029, .009,
		[]classBound{{1, 1, .013}, {9, 16, .015}, {17, MaxGPUs, .012}}},
}

type classBound struct {
	from, to int // GPUs
	distance float64
}

// margin is what a distance may exceed the printed one by.
const margin = 0.02

// Ensure that arrivals, widths and durations are distributed as in the published traces. Whole traces of equal length
// are compared seed by seed; of twenty seeds, two would fail at Philly and one at PAI. Classes of durations, of which
// some have but a few hundred jobs, so that two such samples of one law would differ by more, are compared with those
// of two million jobs.
func TestLikeReality(t *testing.T) {
	dir := filepath.Join(shareddata.DataDir(t), "traces")
	for _, r := range realities {
		all, err := Read(filepath.Join(dir, r.path), Options{})
		if err != nil {
			t.Fatal(err)
		}
		window := within(t, all.Jobs, r.origin, r.from, r.to)
		for seed := range uint64(5) {
			g, err := Like(r.site)
			if err != nil {
				t.Fatal(err)
			}
			g.Seed, g.Jobs = seed, len(window)
			jobs := Generate(g).Jobs
			check := func(what string, got, want []float64, bound float64) {
				d := distance(got, want)
				t.Logf("%s, seed %d: %s differ by %.3f", r.site, seed, what, d)
				if d > bound+margin {
					t.Errorf("%s, seed %d: %s differ by %.3f, want at most %.3f", r.site, seed, what, d, bound+margin)
				}
			}
			check("gaps", gapsOf(jobs), gapsOf(window), r.gaps)
			check("hourly counts", hourlyOf(jobs), hourlyOf(window), r.hourly)
			check("widths", widthsOf(jobs), widthsOf(all.Jobs), 0)
			check("durations", durationsOf(jobs, 1, MaxGPUs), durationsOf(all.Jobs, 1, MaxGPUs), r.durations)
		}
		drawn := make([][]float64, len(r.classes))
		g, _ := Like(r.site)
		g.Seed, g.Jobs = 1, 2_000_000
		for j := range g.All() {
			for i, c := range r.classes {
				drawn[i] = append(drawn[i], durationsOf([]Job{j}, c.from, c.to)...)
			}
		}
		for i, c := range r.classes {
			d := distance(drawn[i], durationsOf(all.Jobs, c.from, c.to))
			t.Logf("%s: durations of %d to %d GPUs differ by %.3f", r.site, c.from, c.to, d)
			if d > c.distance+margin {
				t.Errorf("%s: durations of %d to %d GPUs differ by %.3f, want at most %.3f", r.site, c.from, c.to, d,
					c.distance+margin)
			}
		}
	}
}

// within returns the jobs submitted from one time to another.
func within(t *testing.T, jobs []Job, origin, from, to string) []Job {
	t.Helper()
	parse := func(s string) time.Time {
		x, err := time.Parse("2006-01-02T15:04:05", s)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	start, end := parse(from).Sub(parse(origin)), parse(to).Sub(parse(origin))
	return slices.DeleteFunc(slices.Clone(jobs), func(j Job) bool {
		at := time.Duration(j.Spec.Submit)
		return at < start || at >= end
	})
}

// distance is the largest difference between two empirical distribution functions.
func distance(a, b []float64) float64 {
	slices.Sort(a)
	slices.Sort(b)
	worst, i, k := 0.0, 0, 0
	for i < len(a) && k < len(b) {
		x := min(a[i], b[k])
		for i < len(a) && a[i] == x {
			i++
		}
		for k < len(b) && b[k] == x {
			k++
		}
		worst = max(worst, math.Abs(float64(i)/float64(len(a))-float64(k)/float64(len(b))))
	}
	return worst
}

func gapsOf(jobs []Job) []float64 {
	list := make([]float64, len(jobs)-1)
	for i := range list {
		list[i] = time.Duration(jobs[i+1].Spec.Submit - jobs[i].Spec.Submit).Seconds()
	}
	return list
}

// hourlyOf counts jobs by hour, from that of the first to that of the last.
func hourlyOf(jobs []Job) []float64 {
	hour := func(j *Job) int { return int(time.Duration(j.Spec.Submit) / time.Hour) }
	first := hour(&jobs[0])
	list := make([]float64, hour(&jobs[len(jobs)-1])-first+1)
	for i := range jobs {
		list[hour(&jobs[i])-first]++
	}
	return list
}

func widthsOf(jobs []Job) []float64 {
	list := make([]float64, len(jobs))
	for i := range jobs {
		list[i] = float64(jobs[i].Spec.GPUs.Want)
	}
	return list
}

// durationsOf returns the durations of jobs of some widths, clamped as those of Venus and PAI are.
func durationsOf(jobs []Job, from, to int) []float64 {
	const clamp = 172800
	var list []float64
	for i := range jobs {
		if w := int(jobs[i].Spec.GPUs.Want); w >= from && w <= to {
			list = append(list, min(jobs[i].Duration.Seconds(), clamp))
		}
	}
	return list
}

// Ensure that end states have their shares of jobs and of GPU time, whatever the durations: to 10 % of each over five
// seeds.
func TestLikeStates(t *testing.T) {
	for _, site := range Sites() {
		g, err := Like(site)
		if err != nil {
			t.Fatal(err)
		}
		jobs, work := map[string]float64{}, map[string]float64{}
		all, total := 0.0, 0.0
		for g.Seed = range 5 {
			g.Jobs = 100_000
			for j := range g.All() {
				x := j.Duration.Seconds() * float64(j.Spec.GPUs.Want)
				jobs[j.State]++
				work[j.State] += x
				all, total = all+1, total+x
			}
		}
		t.Logf("%s: %.0f GPU-seconds per job, expected %.0f", site, total/all, g.MeanWork())
		if math.Abs(total/all/g.MeanWork()-1) > .10 {
			t.Errorf("%s: %.0f GPU-seconds per job, want %.0f", site, total/all, g.MeanWork())
		}
		for _, s := range g.States {
			gotJobs, gotTime := jobs[s.Name]/all, work[s.Name]/total
			t.Logf("%s, %s: %.4f of jobs, %.4f of GPU time, want %v, %v", site, s.Name, gotJobs, gotTime, s.Jobs,
				s.Time)
			if math.Abs(gotJobs/s.Jobs-1) > .02 || math.Abs(gotTime/s.Time-1) > .10 {
				t.Errorf("%s, %s: %.4f of jobs, %.4f of GPU time, want %v, %v", site, s.Name, gotJobs, gotTime, s.Jobs,
					s.Time)
			}
		}
	}
}

// Ensure that the users of Venus concentrate GPU time as published: 15.3 % the first, 59.6 % a twentieth, 88.2 % a
// fifth of them, to the largest error of the law, 3.3 points, and one for chance.
func TestLikeUsers(t *testing.T) {
	g, err := Like("venus")
	if err != nil {
		t.Fatal(err)
	}
	g.Jobs = 400_000
	users := map[string]float64{}
	total := 0.0
	for j := range g.All() {
		users[j.Spec.User]++
		total++
	}
	list := make([]float64, 0, len(users))
	for _, x := range users {
		list = append(list, x/total)
	}
	slices.Sort(list)
	slices.Reverse(list)
	for _, c := range []struct {
		users int
		share float64
	}{{1, .153}, {8, .596}, {31, .882}} {
		sum := 0.0
		for _, x := range list[:c.users] {
			sum += x
		}
		if math.Abs(sum-c.share) > .043 {
			t.Errorf("the first %d users have %.3f of jobs, want %.3f", c.users, sum, c.share)
		}
	}
}

// Ensure that every site makes traces that keep the reader's promises, and that an unknown one is refused.
func TestLike(t *testing.T) {
	for _, site := range Sites() {
		g, err := Like(site)
		if err != nil {
			t.Fatal(err)
		}
		g.Jobs = 3000
		got := Generate(g)
		checkPromises(t, got)
		roundTrip(t, got)
		for i, j := range got.Jobs {
			if j.Duration%time.Second != 0 || j.Spec.Submit%1e9 != 0 || j.Spec.User == "" || j.State == "" ||
				(j.Spec.Group != "") != (site == "philly") {
				t.Fatalf("%s: job %d: %+v", site, i, j)
			}
		}
	}
	_, err := Like("phily")
	if want := `site "phily" is not known (did you mean "philly"?), want one of philly, venus, pai, seren`; err ==
		nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}
