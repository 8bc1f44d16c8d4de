package task_test

import (
	"fmt"
	"time"

	"github.com/trainyard/trainyard/attempt/task"
)

func ExampleTask() {
	t := task.Task{Command: []string{"python", "train.py"}, Dir: "/lab", Grace: 30 * time.Second}
	if err := t.Validate(); err != nil {
		fmt.Println(err)
		return
	}
	back, err := task.DecodeTask(t.Encode())
	fmt.Println(back.Command, back.Grace, err)
	// Output: [python train.py] 30s <nil>
}
