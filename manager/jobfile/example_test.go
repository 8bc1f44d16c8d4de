package jobfile_test

import (
	"fmt"

	"github.com/trainyard/trainyard/manager/jobfile"
)

func ExampleParse() {
	f, err := jobfile.Parse([]byte(`
defaults: {grace: 10s}
jobs:
  - name: train
    command: [python, train.py]
    gpus: {min: 1, max: 8, default: 4}
    after: [prepare]
  - name: prepare
    command: [python, prepare.py]
`), "/lab/jobs.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, j := range f.Jobs {
		fmt.Println(j.Spec.Name, j.Spec.GPUs, j.Spec.After, j.Task.Encode())
	}
	_, err = jobfile.Parse([]byte("jobs:\n  - command: python train.py\n"), "jobs.yaml")
	fmt.Println(err)
	// Output:
	// prepare {1 1 1} [] {"command":["python","prepare.py"],"dir":"/lab","grace_ns":10000000000}
	// train {1 4 8} [0] {"command":["python","train.py"],"dir":"/lab","grace_ns":10000000000}
	// jobfile: jobs.yaml:2:14: command "python train.py", want a list of arguments, as in [python, train.py] (no shell reads it)
}
