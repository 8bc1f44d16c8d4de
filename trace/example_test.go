package trace_test

import (
	"fmt"
	"strings"

	"github.com/trainyard/trainyard/trace"
)

func Example() {
	file := strings.NewReader("job_id,submit_s,num_gpus,duration_s,user\ntrain,0,8,3600,ann\ntune,600,1,90.5,bob\n")
	t, err := trace.Parse(file, "day.csv", trace.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, j := range t.Jobs {
		fmt.Println(j.Spec.Name, j.Spec.Submit, j.Spec.GPUs.Want, j.Duration)
	}
	fmt.Printf("offered load of 64 GPUs: %.3f\n", trace.Describe(t).OfferedLoad(64))

	_, err = trace.Parse(strings.NewReader("job_id,submit_s,num_gpus,duration_s\ntrain,0,none,3600\n"), "bad.csv",
		trace.Options{})
	fmt.Println(err)
	// Output:
	// train 0s 8 1h0m0s
	// tune 600s 1 1m30.5s
	// offered load of 64 GPUs: 0.752
	// trace: bad.csv: line 2: num_gpus "none", want a whole number from 1 to 1000000, or one with up to three decimals
}
