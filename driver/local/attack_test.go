package local

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trainyard/trainyard/driver/local/procs"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/sched"
)

// horrors are what a job may leave where a record of its run directory stands, by what makes them at a path.
var horrors = map[string]func(path string) error{
	"endless":     func(path string) error { return os.Symlink("/dev/zero", path) },
	"pipe":        func(path string) error { return unix.Mkfifo(path, 0o600) },
	"folder":      func(path string) error { return os.Mkdir(path, 0o700) },
	"loop":        func(path string) error { return os.Symlink(filepath.Base(path), path) },
	"30 MB":       func(path string) error { return write(path, `{"text":"`+strings.Repeat("x", 30<<20)+`"}`) },
	"no JSON":     func(path string) error { return write(path, "{\"code\":") },
	"wrong types": func(path string) error { return write(path, `{"code":"0","ended":7,"pid":[],"job":{}}`) },
	"deep":        func(path string) error { return write(path, strings.Repeat("[", 60<<10)) },
	"a list":      func(path string) error { return write(path, "[]") },
	"unreadable":  func(path string) error { return os.WriteFile(path, []byte(`{"code":`), 0) },
	"socket": func(path string) error {
		l, err := net.Listen("unix", path)
		if err != nil {
			return err
		}
		l.(*net.UnixListener).SetUnlinkOnClose(false)
		return l.Close()
	},
}

func write(path, text string) error { return os.WriteFile(path, []byte(text), 0o600) }

// horrify puts a horror at each of some names in a folder.
func horrify(t *testing.T, folder string, horror func(path string) error, names ...string) {
	t.Helper()
	t.Chdir(folder) // the address of a socket is short
	for _, name := range names {
		remove(t, name)
		if err := horror(name); err != nil {
			t.Fatal(err)
		}
	}
}

// Ensure that whatever stands where a shim that was killed has its records is harmless: the attempt is judged as if
// there were none, none of its processes is left, and the next attempt is started.
func TestAttackRecords(t *testing.T) {
	for name, horror := range horrors {
		t.Run(name, func(t *testing.T) {
			p := begun(t)
			killShim(t, p.run())
			p.gone(t)
			run := string(p.run())
			horrify(t, run, horror, "over.json", "starting.json", "order.json", "control", "socket", "output.log",
				"progress.jsonl", ".ready", "alive.json")
			horrify(t, filepath.Dir(run), horror, "odometer.json")
			h := take(t, p.next(t, 2), p.view)
			h.end(0, sched.NodeLost)
			none(t, p.mark)
			touch(t, p.goOn)
			h.apply(start(0, 2, 0))
			h.until("the second attempt", func() bool {
				e := h.find(sched.AttemptStarted, 0)
				return e != nil && e.Attempt == 2
			})
		})
	}
}

// Ensure that a job which puts things where its next attempts are to run, or where its lock is, holds no one up: its
// own attempts fail, the driver closes, and another job is run.
func TestAttackNextFolder(t *testing.T) {
	for name, horror := range horrors {
		t.Run(name, func(t *testing.T) {
			list, _ := jobs(t, time.Second, "exit 0", "exit 0")
			dir := folder(t)
			d := open(t, dir, 1, 2, list...)
			t.Cleanup(d.Close)
			run := string(d.o.State.RunDir(0, 1))
			if err := os.MkdirAll(run, 0o700); err != nil {
				t.Fatal(err)
			}
			horrify(t, run, horror, "shim.log", "output.log", ".over.json")
			horrify(t, filepath.Dir(run), horror, "lock")
			h := take(t, d, sched.View{})
			h.arrivals(2)
			h.apply(start(0, 1, 0), start(1, 1, 1))
			h.end(1, sched.Finished)
			h.until("the end of the first", func() bool {
				return h.find(sched.AttemptEnded, 0) != nil || h.find(sched.StartFailed, 0) != nil
			})
		})
	}
}

// Ensure that no end is believed while processes run, and that no code and no time is that there cannot be: what a
// record says otherwise is no record.
func TestAttackForgedEnd(t *testing.T) {
	const year9999 = "9999-12-31T23:59:59Z"
	for record, want := range map[string]sched.Outcome{
		`{"code":1099511627776,"ended":"` + year9999 + `"}`: sched.NodeLost,
		`{"code":256}`: sched.NodeLost,
		`{"code":-1}`:  sched.NodeLost,
		`{"code":0,"started":"` + year9999 + `","ended":"` + year9999 + `"}`:                       sched.Finished,
		`{"code":7,"started":"0001-01-01T00:00:01Z","ended":"0001-01-01T00:00:01Z","grace":-1}`:    sched.Failed,
		`{"failed":"the machine","suspects":["slot-1"]}`:                                           sched.NodeLost,
		`{"code":0,"failed":"the machine","suspects":["slot-1"],"started":"2020-01-01T00:00:00Z"}`: sched.NodeLost,
	} {
		for _, boot := range []string{"", "another"} {
			t.Run(record+boot, func(t *testing.T) {
				t.Parallel()
				p := begun(t)
				killShim(t, p.run())
				p.gone(t)
				if err := write(filepath.Join(string(p.run()), "over.json"), record); err != nil {
					t.Fatal(err)
				}
				if boot != "" {
					alive, err := p.run().Alive()
					if err != nil {
						t.Fatal(err)
					}
					alive.BootID = boot
					spoil(t, filepath.Join(string(p.run()), "alive.json"), alive)
				}
				before := p.view.Now
				h := take(t, p.next(t, 2), p.view)
				e := h.end(0, want)
				none(t, p.mark)
				if e.Code < 0 || e.Code > 255 || e.Time < before || e.Time > h.d.clock() || len(e.GPUs) > 0 {
					t.Errorf("%+v, want a code and a time that can be", e)
				}
				for _, e := range h.events {
					if e.Kind == sched.GPUChanged || e.Kind == sched.StartFailed {
						t.Errorf("%+v is said of another's device", e)
					}
				}
			})
		}
	}
}

// Ensure that a job which forges its end while it runs, its shim killed and its lock gone, is ended before that is
// reported, and that an alive process it names in place of its shim does not keep its device.
func TestAttackForgedWhileRunning(t *testing.T) {
	t.Parallel()
	d := open(t, folder(t), 1, 1)
	t.Cleanup(d.Close)
	run := string(d.o.State.RunDir(0, 1))
	self, err := json.Marshal(aliveSelf(t))
	if err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf(`sleep MARK & cd %s; until [ -e alive.json ]; do sleep 0.01; done; rm ../lock; `+
		`echo '%s' >alive.json; echo '{"code":0,"ended":"9999-01-01T00:00:00Z"}' >over.json; kill -9 $PPID; `+
		`exec sleep MARK`, run, self)
	job, mark := jobOf(t, script, time.Minute)
	d.o.Jobs = []Arrival{job}
	h := take(t, d, sched.View{})
	h.arrivals(1)
	h.apply(start(0, 1, 0))
	h.until("the end", func() bool { // which of both depends on whether its start was heard of before
		return h.find(sched.AttemptEnded, 0) != nil || h.find(sched.StartFailed, 0) != nil
	})
	none(t, mark)
}

// aliveSelf describes this process as if it were a shim.
func aliveSelf(t *testing.T) *shim.Alive {
	t.Helper()
	p := begun(t)
	alive, err := p.run().Alive()
	if err != nil {
		t.Fatal(err)
	}
	start, err := procs.StartTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	alive.PID, alive.StartTime = os.Getpid(), start
	touch(t, p.goOn)
	return alive
}

// Ensure that a job which kills its shim and listens in its place keeps its device no longer than any other whose shim
// died: whatever it says, and however long it says nothing.
func TestAttackFalseShim(t *testing.T) {
	for name, says := range map[string]string{"silent": "", "refuses": `{"refused":"order of epoch 1"}`,
		"endless": "endless", "over": `{"over":true}`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := begun(t)
			killShim(t, p.run())
			p.gone(t)
			l := listenFor(t, string(p.run()), says)
			defer l.Close()
			d := p.next(t, 2)
			d.doubtEvery = 10 * time.Millisecond
			h := take(t, d, p.view)
			h.apply(stop(0, 1))
			h.end(0, sched.NodeLost)
			none(t, p.mark)
		})
	}
}

// listenFor listens as the shim of a run directory and says something to whoever comes.
func listenFor(t *testing.T, run, says string) net.Listener {
	t.Helper()
	remove(t, filepath.Join(run, "control"))
	folder, err := os.Open(run)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	l, err := net.Listen("unix", fmt.Sprintf("/proc/self/fd/%d/control", folder.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				if says == "endless" {
					_, err = fmt.Fprint(conn, `{"refused":"`)
					for err == nil {
						_, err = fmt.Fprint(conn, strings.Repeat("x", 1<<16))
					}
					return
				}
				_, _ = fmt.Fprintln(conn, says)
			}()
		}
	}()
	return l
}

// Ensure that a job that has its socket lead to another's does not have that one stopped in its place.
func TestAttackAnothersSocket(t *testing.T) {
	for name, lead := range map[string]func(old, new string) error{"link": os.Symlink, "hard link": os.Link} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			list, _ := jobs(t, time.Minute, "echo ready; exec sleep MARK", "echo ready; exec sleep MARK")
			dir := folder(t)
			d := open(t, dir, 1, 2, list...)
			h := take(t, d, sched.View{})
			h.arrivals(2)
			h.apply(start(0, 1, 0), start(1, 1, 1))
			for j := range sched.JobID(2) {
				h.await(sched.AttemptStarted, j)
			}
			d.Close()
			run, other := string(d.o.State.RunDir(0, 1)), string(d.o.State.RunDir(1, 1))
			remove(t, filepath.Join(run, "control"))
			if err := lead(filepath.Join(other, "control"), filepath.Join(run, "control")); err != nil {
				t.Fatal(err)
			}
			v := known(d, sched.Job{Attempt: sched.Running, Up: true, Attempts: 1})
			v.Jobs = append(v.Jobs, v.Jobs[0])
			v.Jobs[1].GPUs, v.Jobs[1].Spec = []sched.GPUID{1}, d.view.Jobs[1].Spec
			p := &past{dir: dir, origin: d.o.Origin, list: list}
			h = take(t, p.next(t, 2), v)
			h.apply(stop(0, 1))
			killShim(t, shim.RunDir(run)) // its own is not to be reached
			h.end(0, sched.NodeLost)
			if h.find(sched.AttemptEnded, 1) != nil {
				t.Error("the other job was stopped")
			}
			if alive, err := shim.RunDir(other).Alive(); err != nil || !alive.Lives() {
				t.Errorf("the other job's shim: %+v, %v", alive, err)
			}
		})
	}
}

// Ensure that an order of a manager that there is none of ends neither this driver nor the next, and that both are
// obeyed after it.
func TestAttackEpoch(t *testing.T) {
	t.Parallel()
	p := begun(t)
	d := p.next(t, 2)
	h := take(t, d, p.view)
	claim(t, p.run())
	for range 20 { // it would end by then
		if _, err := h.desk.Next(t.Context(), h.d.Now().Add(10*time.Millisecond)); err != nil {
			t.Fatal(err)
		}
	}
	h = take(t, p.next(t, 3), p.view)
	claim(t, p.run())
	h.apply(stop(0, 1))
	h.end(0, sched.Preempted)
	none(t, p.mark)
}

// claim sends a shim the highest number that a manager could have.
func claim(t *testing.T, run shim.RunDir) {
	t.Helper()
	folder, err := os.Open(string(run))
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	conn, err := net.Dial("unix", fmt.Sprintf("/proc/self/fd/%d/control", folder.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprintln(conn, `{"epoch":9223372036854775807}`); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err != nil { // it was heard: it says that the job is up
		t.Log(err)
	}
}

// Ensure that a checkpoint folder of however many files is looked at only so far.
func TestAttackCheckpointFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	left := 300
	for i := range 1000 {
		touch(t, filepath.Join(dir, fmt.Sprint(i)))
	}
	n := 0
	for range entries(dir, &left) {
		n++
	}
	if n != 300 || left != 0 {
		t.Errorf("%d looked at, %d left, want 300 and 0", n, left)
	}
	if err := os.Symlink(dir, dir+"-link"); err != nil {
		t.Fatal(err)
	}
	if at := newest(dir+"-link", time.Now().Add(time.Hour)); !at.IsZero() {
		t.Errorf("a link to a folder was followed: %v", at)
	}
}

// Ensure that a driver whose folder is moved away judges nothing by that, and makes none in its place: the attempt goes
// on, and is followed once the folder is back.
func TestAttackFolderMoved(t *testing.T) {
	t.Parallel()
	p := begun(t)
	d := p.next(t, 2)
	d.doubtEvery = time.Millisecond
	h := take(t, d, p.view)
	away := p.dir + ".away"
	if err := os.Rename(p.dir, away); err != nil {
		t.Fatal(err)
	}
	for range 20 { // it would be judged by then
		if _, err := h.desk.Next(t.Context(), h.d.Now().Add(20*time.Millisecond)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(away, p.dir); err != nil {
		t.Fatal(err)
	}
	touch(t, p.goOn)
	if e := h.end(0, sched.Failed); e.Code != 5 {
		t.Errorf("%+v, want code 5", e)
	}
	none(t, p.mark)
}

// Ensure that a job which stops its own shim, once or again and again, keeps no device after it was asked to end: not
// where it also takes the shim's socket away, names another in its place, or hides from its group.
func TestAttackStoppedShim(t *testing.T) {
	const (
		loop  = `while :; do kill -STOP $PPID; done`
		often = `while :; do kill -STOP $PPID; sleep 0.01; done`
		rest  = `while :; do sleep 0.1; done`
	)
	for name, script := range map[string]string{
		"once":         `kill -STOP $PPID; echo ready; ` + rest,
		"often":        `echo ready; ` + often,
		"tight loop":   `echo ready; ` + loop,
		"two loops":    `(` + strings.ReplaceAll(loop, "$PPID", "$TOP") + `) & echo ready; ` + loop,
		"ends":         `kill -STOP $PPID; echo ready; exit 0`,
		"no socket":    `cd $RUN; rm control; echo ready; ` + loop,
		"other's name": `cd $RUN; rm control alive.json starting.json; echo ready; ` + loop,
		"hidden":       `env -i setsid sh -c "while :; do kill -STOP $TOP; done # MARK" & echo ready; ` + rest,
		"deaf":         `trap "" TERM CONT; kill -STOP $PPID; echo ready; ` + rest,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := open(t, folder(t), 1, 1)
			t.Cleanup(d.Close)
			d.wakeEvery, d.forceAfter = 20*time.Millisecond, 200*time.Millisecond
			set := fmt.Sprintf("# MARK\nTOP=$PPID; RUN=%s; ", d.o.State.RunDir(0, 1))
			job, mark := jobOf(t, set+`until [ -e $RUN/alive.json ]; do sleep 0.01; done; `+script,
				300*time.Millisecond)
			d.o.Jobs = []Arrival{job}
			h := take(t, d, sched.View{})
			h.arrivals(1)
			h.apply(start(0, 1, 0))
			h.outputHas(0, 1, "ready")
			h.apply(stop(0, 1))
			e := h.await(sched.AttemptEnded, 0)
			if want := sched.Preempted; e.Outcome != want && !(name == "ends" && e.Outcome == sched.Finished) {
				t.Errorf("%+v, want it %v", e, want)
			}
			none(t, mark)
			if d.o.State.Held(0) {
				t.Error("the lock of the job is held still")
			}
			waitFor(t, "the end of the shim", func() bool {
				return len(procs.WithLastArgument(string(d.o.State.RunDir(0, 1)))) == 0
			})
		})
	}
}

// Ensure that what a job puts where the folders of its next attempts will be sends nothing of them elsewhere, and that
// these run.
func TestAttackPlantedFolder(t *testing.T) {
	for name, plant := range map[string]string{
		"link":      `ln -s $ELSEWHERE $JOB/2`,
		"file":      `echo x >$JOB/2`,
		"pipe":      `mkfifo $JOB/2`,
		"dangling":  `ln -s $ELSEWHERE/none $JOB/2`,
		"itself":    `ln -s 2 $JOB/2`,
		"last's":    `ln -s 1 $JOB/2`,
		"a record":  `mkdir $JOB/2; echo '{"code":0,"ended":"2026-01-01T00:00:01Z"}' >$JOB/2/over.json`,
		"a process": `mkdir $JOB/2; cp $JOB/1/alive.json $JOB/1/starting.json $JOB/2`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := open(t, folder(t), 1, 1)
			t.Cleanup(d.Close)
			elsewhere := t.TempDir()
			script := fmt.Sprintf("JOB=%s; ELSEWHERE=%s; ", d.o.State.Job(0), elsewhere) +
				"if [ $TRAINYARD_ATTEMPT = 1 ]; then " + plant + "; exit 1; fi; echo attempt $TRAINYARD_ATTEMPT"
			evil, _ := jobOf(t, script, time.Second)
			d.o.Jobs = []Arrival{evil}
			h := take(t, d, sched.View{})
			h.arrivals(1)
			h.apply(start(0, 1, 0))
			h.end(0, sched.Failed)
			h.apply(start(0, 2, 0))
			h.until("the second end", func() bool {
				return slices.ContainsFunc(h.events, func(e sched.Event) bool {
					return e.Kind == sched.AttemptEnded && e.Attempt == 2 && e.Outcome == sched.Finished
				})
			})
			if left, err := os.ReadDir(elsewhere); err != nil || len(left) > 0 {
				t.Errorf("%v, %v, want nothing there", left, err)
			}
		})
	}
}

// Ensure that a job which hides its shim from the manager, by what is in the folder, and stops it, keeps no device: the
// next one gets it.
func TestAttackHiddenShim(t *testing.T) {
	const forged = `{"code":0,"started":"2026-01-01T00:00:00Z","ended":"2026-01-01T00:00:01Z"}`
	for name, script := range map[string]string{
		"no folder":     `kill -STOP $PPID; cd /; rm -rf $JOB`,
		"no lock":       `kill -STOP $PPID; cd $RUN; rm ../lock alive.json starting.json`,
		"another lock":  `kill -STOP $PPID; cd $RUN; cp ../lock l; mv l ../lock; rm *.json`,
		"forged record": `kill -STOP $PPID; cd $RUN; cp ../lock l; mv l ../lock; echo '` + forged + `' >over.json`,
		"away":          `kill -STOP $PPID; cd /; mv $JOB $JOB.gone; mkdir $JOB`,
		"children":      `(env -i setsid sleep 1000 &); kill -STOP $PPID; cd /; rm -rf $JOB`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := open(t, folder(t), 1, 1)
			t.Cleanup(d.Close)
			d.doubtEvery = 20 * time.Millisecond
			run := d.o.State.RunDir(0, 1)
			set := fmt.Sprintf("RUN=%s; JOB=%s; until [ -e $RUN/alive.json ]; do sleep 0.01; done; ", run,
				d.o.State.Job(0))
			evil, _ := jobOf(t, set+"cd $RUN; until [ -e "+filepath.Join(string(d.o.State), "up")+
				" ]; do sleep 0.01; done; "+script+"; exit 0", 300*time.Millisecond)
			next, _ := jobOf(t, "echo fine", time.Second)
			d.o.Jobs = []Arrival{evil, next}
			h := take(t, d, sched.View{})
			h.arrivals(2)
			h.apply(start(0, 1, 0))
			h.await(sched.AttemptStarted, 0)
			touch(t, filepath.Join(string(d.o.State), "up"))
			h.await(sched.AttemptEnded, 0)
			if left := procs.WithLastArgument(string(run)); len(left) > 0 {
				t.Errorf("%+v live, want no shim", left)
			}
			h.apply(start(1, 1, 0))
			h.end(1, sched.Finished)
		})
	}
}

// Ensure that a job whose shim is stopped saves all the same when it is asked to end, also by a driver that was not
// there before.
func TestAttackStoppedShimSaves(t *testing.T) {
	for name, late := range map[string]bool{"followed": false, "adopted": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := folder(t)
			job, _ := jobOf(t, `trap 'echo saved; exit 3' TERM; echo ready; `+
				`until [ -e $TRAINYARD_CHECKPOINT_DIR/go ]; do sleep 0.01; done; kill -STOP $PPID; echo stopped; `+
				`while :; do sleep 0.05; done # MARK`, time.Minute)
			d := open(t, dir, 1, 2, job)
			h := take(t, d, sched.View{})
			h.arrivals(1)
			h.apply(start(0, 1, 0))
			h.await(sched.AttemptStarted, 0)
			h.outputHas(0, 1, "ready")
			if late {
				d.Close()
				p := &past{dir: dir, origin: d.o.Origin, list: []Arrival{job}}
				next := p.next(t, 2)
				h = take(t, next, known(d, sched.Job{Attempt: sched.Running, Up: true, Attempts: 1}))
				d = next
			} else {
				t.Cleanup(d.Close)
			}
			touch(t, filepath.Join(d.o.State.Checkpoint(0), "go"))
			h.outputHas(0, 1, "stopped")
			h.apply(stop(0, 1))
			h.end(0, sched.Preempted)
			over := overOf(t, dir, 0, 1)
			if !strings.Contains(h.output(0, 1), "saved") || over.Killed || over.Code != 3 {
				t.Errorf("%+v, %q: want it to save", over, h.output(0, 1))
			}
		})
	}
}
