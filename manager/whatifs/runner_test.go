package whatifs

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/trainyard/trainyard/api"
)

// TestMain makes this binary the program that is asked, where a test wants it.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "child" {
		answers(os.Args[2:])
		return
	}
	os.Exit(m.Run())
}

func answers(args []string) {
	switch {
	case strings.Contains(strings.Join(args, " "), "nice"):
		prio := 0
		for end := time.Now().Add(time.Minute); prio != 1 && time.Now().Before(end); time.Sleep(time.Millisecond) {
			prio, _ = syscall.Getpriority(syscall.PRIO_PROCESS, 0) // 20 - nice; it is set once the process is there
		}
		fmt.Printf(`{"nice":%d,"state":%q}`, 20-prio, os.Getenv("TRAINYARD_STATE"))
	case strings.Contains(strings.Join(args, " "), "memory"):
		all := make([]byte, 3<<30)
		for i := 0; i < len(all); i += 4096 {
			all[i] = 1
		}
		fmt.Printf(`{"got":%d}`, len(all))
	case strings.Contains(strings.Join(args, " "), "words"):
		fmt.Print("no document")
	default:
		fmt.Fprintf(os.Stderr, `{"simulated":0,"of":1,"system":"%d"}`+"\n", os.Getpid())
		time.Sleep(time.Hour)
	}
}

func until(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !f(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not: %s", what)
		}
	}
}

// finish asks a question and returns how it ended.
func finish(t *testing.T, r *Runner, system string) (doc api.WhatIf) {
	t.Helper()
	doc, err := r.Ask("ann", []string{system}, 1)
	if err != nil {
		t.Fatal(err)
	}
	until(t, "it ended", func() bool { doc, err = r.Get(doc.ID); return err != nil || doc.State != api.WhatIfRunning })
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// Ensure that a process gives way to all others, knows no host but the one it is asked about, may not take the memory
// of the machine, and has to write a document.
func TestProcess(t *testing.T) {
	t.Setenv("TRAINYARD_STATE", "/elsewhere")
	r := New([]string{os.Args[0], "child"}, 0)
	defer r.Close()
	if doc := finish(t, r, "nice"); string(doc.Result) != `{"nice":19,"state":""}` {
		t.Errorf("%+v: %s", doc, doc.Result)
	}
	if doc := finish(t, r, "memory"); doc.State != api.WhatIfFailed || !strings.Contains(doc.Error, outOfMemory) {
		t.Errorf("%+v, want it to fail for memory", doc)
	}
	if doc := finish(t, r, "words"); doc.State != api.WhatIfFailed || doc.Error != "it wrote no document" {
		t.Errorf("%+v, want it to fail", doc)
	}
	gone := New([]string{"/no/such/program"}, 0)
	if _, err := gone.Ask("ann", nil, 1); err == nil {
		t.Error("a program that is not there was started")
	}
}

// alive reports whether a process is there, and no zombie.
func alive(pid string) bool {
	out, err := exec.Command("ps", "-o", "stat=", "-p", pid).Output()
	return err == nil && !strings.HasPrefix(strings.TrimSpace(string(out)), "Z")
}

// Ensure that a question is killed when no one asks about it any more, and lives while one of several who asked it
// wants it.
func TestAbandoned(t *testing.T) {
	r := New([]string{os.Args[0], "child"}, time.Hour)
	defer r.Close()
	doc, err := r.Ask("ann", []string{"las"}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if same, bad := r.Ask("bob", []string{"las"}, 1); bad != nil || same.ID != doc.ID {
		t.Fatalf("%+v, %v, want the same question", same, bad)
	}
	until(t, "it runs", func() bool { doc, err = r.Get(doc.ID); return err != nil || doc.Now != "" })
	pid := doc.Now
	if doc, err = r.Cancel(doc.ID, "ann", false); err != nil || doc.State != api.WhatIfRunning {
		t.Errorf("%+v, %v, want it to go on for bob", doc, err)
	}
	if doc, err = r.Cancel(doc.ID, "bob", false); err != nil || doc.State != api.WhatIfCancelled {
		t.Errorf("%+v, %v, want it cancelled", doc, err)
	}
	until(t, "its process ended", func() bool { return !alive(pid) })

	short := New([]string{os.Args[0], "child"}, time.Second)
	defer short.Close()
	if doc, err = short.Ask("ann", []string{"las"}, 2); err != nil {
		t.Fatal(err)
	}
	until(t, "it was given up", func() bool {
		short.mu.Lock()
		defer short.mu.Unlock()
		return short.list[0].doc.State == api.WhatIfCancelled
	})
}
