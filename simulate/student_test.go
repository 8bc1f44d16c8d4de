package simulate

import (
	"context"
	"math"
	"testing"

	"github.com/trainyard/trainyard/model/price"
	"github.com/trainyard/trainyard/model/speedup"
)

// Ensure that quantiles are those of tables.
func TestStudent(t *testing.T) {
	for _, c := range []struct {
		p       float64
		freedom int
		want    float64
	}{
		{.975, 1, 12.7062}, {.975, 2, 4.30265}, {.975, 3, 3.18245}, {.975, 4, 2.77645}, {.95, 4, 2.13185},
		{.975, 9, 2.26216}, {.995, 29, 2.75639}, {.975, 1000, 1.96234},
	} {
		if got := studentQuantile(c.p, c.freedom); math.Abs(got-c.want) > 1e-5*c.want {
			t.Errorf("quantile %v with %d degrees of freedom is %v, want %v", c.p, c.freedom, got, c.want)
		}
	}
	if e := Students([]float64{7}); e.Mean != 7 || !math.IsNaN(e.Low) {
		t.Errorf("one value: %v", e)
	}
	// 1 to 5: deviation 1.581139, half width 2.77645 x 1.581139 / sqrt 5
	if e := Students([]float64{1, 2, 3, 4, 5}); math.Abs(e.High-(3+1.963243)) > 1e-5 {
		t.Errorf("1 to 5: %v", e)
	}
}

// Ensure that of 200 verifications of a plan with seeds of their own 90 to 99 % have the time that it expects, and the
// GPUs that it uses, inside their 95 % intervals.
func TestVerifyIntervals(t *testing.T) {
	if testing.Short() {
		t.Skip("a campaign of 200 plans, of 5 runs each")
	}
	const budget = 10
	kinds := []Kind{{App: AmdahlApp(.95, .5), PerHour: 8, Most: 8}, {App: AmdahlApp(.7, .25), PerHour: 8, Most: 8}}
	var classes []price.Class
	for _, k := range kinds {
		class := price.Class{Name: "class", Rate: k.PerHour, Times: [][]float64{nil}}
		for gpus := 1; gpus <= k.Most; gpus++ {
			class.Configs = append(class.Configs, price.Config{GPUs: gpus})
			class.Times[0] = append(class.Times[0],
				k.App.Sizes()[0]/k.App.Speed(0, speedup.Way{GPUs: gpus})/3600)
		}
		classes = append(classes, class)
	}
	x, err := price.NewExact(classes)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := x.At(budget)
	if err != nil {
		t.Fatal(err)
	}
	const repeats = 200
	jct, gpus := 0, 0
	for i := range repeats {
		v, err := Verify(context.Background(), kinds, "boa-exact", budget, plan.Delay, uint64(100*i), 5)
		if err != nil {
			t.Fatal(err)
		}
		if v.JCT.Low <= plan.Delay && plan.Delay <= v.JCT.High {
			jct++
		}
		if v.GPUs.Low <= plan.Usage && plan.Usage <= v.GPUs.High {
			gpus++
		}
	}
	t.Logf("of %d intervals %d have the time, %d the GPUs", repeats, jct, gpus)
	for _, n := range []int{jct, gpus} {
		if n < repeats*90/100 || n > repeats*99/100 {
			t.Errorf("%d of %d intervals have the mean, want 90 to 99 %%", n, repeats)
		}
	}
}
