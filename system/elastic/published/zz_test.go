package published
import ("testing";"fmt";"time")
func TestZZ(t *testing.T){
	apps := readApps(t)
	for w := range []int{6} {
	_ = w
	for seed := range 2 {
	jobs := readJobs(t, apps, "workloads/workload-6")
	t0 := time.Now()
	res, err := Run(jobs, Params{Policy: Pollux, Seed: uint64(seed)})
	if err != nil { t.Fatal(err) }
	rs := 0
	for _, o := range res.Jobs { rs += o.Restarts }
	fmt.Println(seed, res.MeanJCT(jobs), res.Rounds, rs, time.Since(t0))
	}}
}
