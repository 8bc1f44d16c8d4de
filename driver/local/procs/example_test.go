//go:build linux

package procs_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/trainyard/trainyard/driver/local/procs"
)

// What a shim does: it becomes the parent of orphans, starts the job in a group, and kills the group.
func Example() {
	if err := procs.Subreap(); err != nil {
		panic(err)
	}
	name := fmt.Sprintf("example-%d", os.Getpid())
	group, err := procs.New(procs.Root(), name, "EXAMPLE_COOKIE="+name)
	if err != nil {
		panic(err)
	}
	job := exec.Command("bash", "-c", "(setsid sleep 200 &); trap '' TERM; sleep 200")
	if err = group.Start(job); err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err = group.Kill(ctx); err != nil {
		panic(err)
	}
	fmt.Println(job.Wait())
	left, err := group.Members()
	fmt.Println(left, err, group.Close())
	// Output:
	// signal: killed
	// [] <nil> <nil>
}
