package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/sched"
)

// writeProgram makes a script. Another process writes it: a file that this one has open for writing might be handed on
// to whatever a test that runs at the same time starts, and cannot be run meanwhile.
func writeProgram(t *testing.T, path, text string) {
	t.Helper()
	cmd := exec.Command("sh", "-c", `cat > "$0" && chmod 700 "$0"`, path)
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// Ensure that a program hears of each end and preemption once, when the batch is durable, and of nothing else, and
// that one that fails is reported in the log.
func TestNotify(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program, reported := filepath.Join(dir, "say"), filepath.Join(dir, "said")
	writeProgram(t, program, "#!/bin/sh\nread line\necho \"$TRAINYARD_JOB_ID $TRAINYARD_OUTCOME "+
		"$TRAINYARD_EXIT_CODE $line\" >> "+reported+"\n")
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	n := started(Options{Program: program, Log: logger})
	spec := &sched.JobSpec{Name: "$(touch x); a", User: "ann"}
	v := &sched.View{Jobs: []sched.Job{{Spec: spec, State: sched.Done, Outcome: sched.Failed},
		{Spec: spec, State: sched.Waiting},
		{Spec: spec, State: sched.Done, Outcome: sched.Cancelled, End: 5}}}
	for _, e := range []sched.Event{
		{Kind: sched.AttemptEnded, Job: 0, Outcome: sched.Failed, Code: 3, Text: "it is over"},
		{Kind: sched.Progressed, Job: 0},
		{Kind: sched.AttemptEnded, Job: 1, Outcome: sched.Preempted, Code: 75},
		{Kind: sched.AttemptEnded, Job: 1, Outcome: sched.Failed, Code: 1}, // it is tried again
		{Kind: sched.JobCommanded, Job: 2, Code: int32(sched.CancelJob), Time: 5},
		{Kind: sched.JobCommanded, Job: 2, Code: int32(sched.CancelJob), Time: 6}, // once more
		{Kind: sched.NodeChanged, Job: sched.None},
	} {
		n.Log(v, &e)
	}
	if _, err := os.Stat(reported); err == nil {
		t.Error("said before it is durable")
	}
	for range 2 {
		if err := n.EndBatch(); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "three are reported", func() bool {
		text, _ := os.ReadFile(reported)
		return bytes.Count(text, []byte("\n")) >= 3
	})
	n.Stop()
	text, _ := os.ReadFile(reported)
	const want = `0 failed 3 {"schema":"trainyard.notice/v1","job":0,"name":"$(touch x); a","user":"ann","outcome":"failed","exit_code":3,"text":"it is over"}
1 preempted 75 {"schema":"trainyard.notice/v1","job":1,"name":"$(touch x); a","user":"ann","outcome":"preempted","exit_code":75}
2 cancelled 0 {"schema":"trainyard.notice/v1","job":2,"name":"$(touch x); a","user":"ann","outcome":"cancelled","exit_code":0}
`
	if string(text) != want || log.Len() > 0 {
		t.Errorf("said\n%slogged %s\nwant\n%s", text, &log, want)
	}
	n = started(Options{Program: filepath.Join(dir, "gone"), Log: logger})
	n.batch = []heard{{ofHost: true}}
	_ = n.EndBatch()
	if n.Stop(); !strings.Contains(log.String(), "no one was notified") {
		t.Errorf("logged %q", log.String())
	}
	if list := n.Unheard(); len(list) != 1 || !strings.Contains(list[0], "no one was notified") ||
		strings.Contains(list[0], "gone") || !strings.HasSuffix(list[0], " by program: the manager's log says why") {
		t.Errorf("%q, want no path and who says why", list)
	}
	for i := range 2 * mostLost {
		n.went(&result{letter{Key: keyOf(sched.JobID(i % 30))}, os.ErrNotExist})
	}
	if n.went(&result{letter{Key: keyOf(3)}, nil}); len(n.Unheard()) != mostLost {
		t.Errorf("%d are remembered, want %d", len(n.Unheard()), mostLost)
	}
}

// started is a Notifier of a new folder.
func started(o Options) *Notifier {
	n := patient(o)
	n.Restart(&sched.View{})
	return n
}

// patient is a Notifier that gives a slow machine time.
func patient(o Options) *Notifier {
	n := New(o)
	n.sendTime, n.stopTime = 10*time.Minute, time.Minute
	return n
}

// asking is a job whose user asks for notices.
func asking(name string, ways ...task.Notify) *sched.JobSpec {
	t := task.Task{Command: []string{"x"}, Dir: "/", Grace: 1, Notify: ways}
	return &sched.JobSpec{Name: name, User: "ann", Task: t.Encode()}
}

// view is one of jobs that have failed.
func view(specs ...*sched.JobSpec) *sched.View {
	v := &sched.View{Now: 10}
	for _, s := range specs {
		v.Jobs = append(v.Jobs, sched.Job{Spec: s, State: sched.Done, Outcome: sched.Failed, End: 10, Attempts: 1})
	}
	return v
}

// end logs the end of job 0 at a time.
func end(n *Notifier, v *sched.View, at sched.Time, text string) {
	n.Log(v, &sched.Event{Kind: sched.AttemptEnded, Outcome: sched.Failed, Code: 3, Text: text, Time: at})
	_ = n.EndBatch()
}

// eventually waits for something to be true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for limit := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatal("it is not so: " + what)
		}
	}
}

// Ensure that a webhook has the notice, signed by the secret in its file; that it is tried again where the server
// fails, and not led elsewhere; and that no address stands in an error.
func TestWebhook(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var got []string
	tries := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		switch tries++; {
		case q.URL.Path == "/away":
			http.Redirect(w, q, "/hook", http.StatusTemporaryRedirect)
			return
		case tries == 1:
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		body, _ := io.ReadAll(q.Body)
		at := q.Header.Get("Trainyard-Time")
		got = append(got, fmt.Sprint(q.Header.Get("Trainyard-Signature") == "sha256="+signed("s3cret", at, body), " ",
			q.Header.Get("Trainyard-Notice"), " ", string(body)))
	}))
	defer s.Close()
	file := filepath.Join(t.TempDir(), "hook")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(s.URL + "/hook\ns3cret\n")
	n := started(Options{Host: "lab", Log: slog.New(slog.DiscardHandler)})
	end(n, view(asking("a", task.Notify{Webhook: file})), 10, "timeout: it took 2h")
	eventually(t, "one notice came", func() bool { mu.Lock(); defer mu.Unlock(); return len(got) == 1 })
	n.Stop()
	const want = `true 0.1-failed-0 {"schema":"trainyard.notice/v1","job":0,"name":"a","user":"ann",` +
		`"outcome":"failed","exit_code":3,"text":"timeout: it took 2h","id":"0.1-failed-0","host":"lab"}` + "\n"
	if got[0] != want {
		t.Errorf("got  %s\nwant %s", got[0], want)
	}
	for text, want := range map[string]string{s.URL + "/away": "answered 307", "ftp://secret/": "want an address",
		"": "want an address", "http://127.0.0.1:1/secret": "webhook of"} {
		write(text)
		limit := time.Minute
		if strings.Contains(text, "127.0.0.1:1/") {
			limit = 200 * time.Millisecond // no time for a second try
		}
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		err := post(ctx, file, "1", nil)
		cancel()
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// loaded is the box of a folder.
func loaded(dir string, log io.Writer, now time.Time) *box {
	var b box
	b.load(dir, slog.New(slog.NewTextHandler(log, nil)), now)
	return &b
}

// Ensure that programs of a user that hang are ended with all that they have started, and that the notices of others,
// and of the host, do not wait for them.
func TestHangs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	hangs, quick, host := filepath.Join(dir, "hangs"), filepath.Join(dir, "quick"), filepath.Join(dir, "host")
	var ways []task.Notify // one that is asked for twice is one
	for i := range task.MaxNotify {
		ways = append(ways, task.Notify{Run: fmt.Sprint(hangs, i)})
		writeProgram(t, ways[i].Run, "#!/bin/sh\nsleep 1000 & echo $! >$0.new.$$; mv $0.new.$$ $0.pid.$$; wait\n")
	}
	for _, path := range []string{quick, host} {
		writeProgram(t, path, "#!/bin/sh\ncat >/dev/null\n: >$0.heard.$TRAINYARD_JOB_ID\n")
	}
	there := func(name string, want int) func() bool {
		return func() bool { list, _ := filepath.Glob(filepath.Join(dir, name)); return len(list) == want }
	}
	n := started(Options{Program: host, Dir: dir, Log: slog.New(slog.DiscardHandler)})
	v := view(asking("a", ways...),
		asking("b", task.Notify{Run: quick}))
	v.Jobs[0].Spec.User = "eve"
	end(n, v, 10, "")
	eventually(t, "two hang", there("hangs?.pid.*", userAtOnce))
	n.Log(v, &sched.Event{Kind: sched.AttemptEnded, Job: 1, Outcome: sched.Failed, Time: 10})
	_ = n.EndBatch()
	eventually(t, "the other is heard", there("quick.heard.1", 1))
	eventually(t, "the host hears of both", there("host.heard.*", 2))
	eventually(t, "the others are out of the box", func() bool {
		return len(loaded(dir, io.Discard, time.Now()).has.Letters) == task.MaxNotify
	})
	n.cancel()
	n.Stop()
	pids, _ := filepath.Glob(filepath.Join(dir, "hangs?.pid.*"))
	for _, file := range pids {
		pid, _ := os.ReadFile(file)
		eventually(t, "what it started is gone", gone(string(pid)))
	}
	b, again := loaded(dir, io.Discard, time.Now()), 0
	for _, l := range b.has.Letters {
		if l.About.Again && strings.HasPrefix(l.To.Run, hangs) {
			again++
		}
	}
	if len(b.has.Letters) != task.MaxNotify || again != userAtOnce || len(pids) != userAtOnce || b.has.Through != 10 {
		t.Errorf("%+v through %d, want two that were cut off", b.has.Letters, b.has.Through)
	}
}

// gone reports whether a process is.
func gone(pid string) func() bool {
	return func() bool {
		stat, err := os.ReadFile("/proc/" + strings.TrimSpace(pid) + "/stat")
		return err != nil || strings.Contains(string(stat), ") Z ")
	}
}

// Ensure that a program that ends leaves nothing behind.
func TestLeftBehind(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "leaves")
	writeProgram(t, path, "#!/bin/sh\nsleep 1000 &\necho $! >$0.pid\n")
	if err := program(t.Context(), "", os.Environ(), nil, path); err != nil {
		t.Fatal(err)
	}
	pid, err := os.ReadFile(path + ".pid")
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "what it started is gone", gone(string(pid)))
}

// Ensure that a user whose notices wait drops none of others and of the host, and that theirs are bounded.
func TestRoom(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	b := loaded("", io.Discard, now)
	for i := range 2 * mostWait {
		b.add(letter{Key: fmt.Sprint(i), About: Notice{User: "eve"}}, now)
		b.add(letter{Key: hostKey, About: Notice{User: "eve"}}, now)
	}
	b.add(letter{Key: "x", About: Notice{User: "ann"}}, now)
	if n := len(b.has.Letters); n != userWait+mostWait+1 {
		t.Errorf("%d wait, want %d", n, userWait+mostWait+1)
	}
	sent := map[string]int{}
	for range 2 {
		for _, l := range b.due(now) {
			if l.Key == hostKey {
				l.About.User = hostKey
			}
			sent[l.About.User]++
		}
	}
	if sent["eve"] != userAtOnce || sent["ann"] != 1 || sent[hostKey] != 1 {
		t.Errorf("%v at once", sent)
	}
}

// Ensure that a clock that was ahead holds nothing up, that notices of a program of the host that is no more are
// dropped with one warning, and that a restart forgets no idle job.
func TestLoad(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), time.Now()
	ahead := now.Add(24 * time.Hour)
	b := loaded(dir, io.Discard, ahead)
	b.has.Last["0/0"], b.has.Idle["0"] = ahead, 1
	for _, key := range []string{hostKey, hostKey, "0/0"} {
		b.add(letter{Key: key, To: task.Notify{Run: "/x"}}, ahead)
	}
	b.save(ahead)
	var log bytes.Buffer
	n := patient(Options{Dir: dir, Log: slog.New(slog.NewTextHandler(&log, nil))})
	n.Restart(&sched.View{Now: 7})
	eventually(t, "it is noted", func() bool { at, known := n.box.since(); return known && at == 7 })
	n.Stop()
	if strings.Count(log.String(), "\n") != 1 || !strings.Contains(log.String(), "dropped=2") {
		t.Errorf("logged %q", log.String())
	}
	b = loaded(dir, io.Discard, now)
	if l := b.has.Letters; len(l) != 1 || l[0].Due.After(time.Now().Add(rest)) || len(b.has.Last) > 0 ||
		b.has.Idle["0"] != 1 {
		t.Errorf("%+v", b.has)
	}
}

// Ensure that what ended while no one noted it is sent after a restart, once, and nothing of before.
func TestRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program, reported := filepath.Join(dir, "say"), filepath.Join(dir, "said")
	writeProgram(t, program, "#!/bin/sh\necho $TRAINYARD_JOB_ID $TRAINYARD_OUTCOME >> "+reported+"\n")
	way := task.Notify{Run: program}
	v := view(asking("old", way))
	for i := range 3 {
		n := patient(Options{Dir: dir, Log: slog.New(slog.DiscardHandler)})
		n.Restart(v)
		eventually(t, "it is noted", func() bool { at, known := n.box.since(); return known && at == v.Now })
		eventually(t, "it is reported", func() bool {
			text, _ := os.ReadFile(reported)
			return i == 0 || bytes.Contains(text, []byte("\n"))
		})
		n.Stop()
		if i == 0 {
			v = view(asking("old", way), asking("new", way), asking("none"))
			v.Now, v.Jobs[1].End, v.Jobs[2].End = 20, 20, 20
		}
	}
	if text, _ := os.ReadFile(reported); string(text) != "1 failed\n" {
		t.Errorf("said %q, want job 1 once", text)
	}
}

// Ensure that of many notices, at any times, with crashes anywhere, those of a key are sent at least a minute apart
// and each is sent, or counted in a later one; and that one is sent twice only if a crash met it, and then says so.
func TestBox(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 1))
		crashes, dir, now := seed%2 == 0, "", time.Unix(1e9, 0)
		if crashes {
			dir = t.TempDir()
		}
		var b box
		b.load(dir, slog.New(slog.DiscardHandler), now)
		put, out := map[string]int{}, map[string]int{}
		last, sentOnce := map[string]time.Time{}, map[string]bool{}
		var under []letter
		crashed := false
		for step := range 300 {
			now = now.Add(time.Duration(r.IntN(40)) * time.Second)
			key := string(rune('a' + r.IntN(3)))
			switch x := r.IntN(10); {
			case x < 4 && step < 200:
				b.add(letter{Key: key, About: Notice{ID: fmt.Sprint(step), Outcome: "failed"}}, now)
				put[key]++
				b.save(now)
			case x < 7:
				list := b.due(now)
				b.save(now) // before anything is sent
				for _, l := range list {
					if at, was := last[l.Key]; was && now.Sub(at) < rest && !l.About.Again {
						t.Fatalf("seed %d: two of %s within %v", seed, l.Key, now.Sub(at))
					}
					if sentOnce[l.About.ID] && !l.About.Again || l.About.Again && !crashed {
						t.Fatalf("seed %d: %s again: %v, crashed: %v", seed, l.About.ID, l.About.Again, crashed)
					}
					last[l.Key], sentOnce[l.About.ID] = now, true
					under = append(under, l)
				}
			case x < 9:
				for _, l := range under {
					out[l.Key] += 1 + l.About.Also["failed"]
					b.sent(&l, false)
				}
				under = nil
			case crashes:
				b, crashed = box{}, true
				b.load(dir, slog.New(slog.DiscardHandler), now)
				under = nil
			}
		}
		for range 20 {
			now = now.Add(time.Hour)
			for _, l := range append(under, b.due(now)...) {
				out[l.Key] += 1 + l.About.Also["failed"]
				b.sent(&l, false)
			}
			under = nil
		}
		for key := range put {
			if out[key] < put[key] || !crashed && out[key] > put[key] || len(b.has.Letters) > 0 {
				t.Fatalf("seed %d: %v in, %v out, %d left", seed, put, out, len(b.has.Letters))
			}
		}
	}
}

// Ensure that a job is idle once none of its GPUs has done anything for ten minutes without a break, and that its user
// hears that once for an attempt.
func TestIdle(t *testing.T) {
	t.Parallel()
	v := view(asking("a", task.Notify{On: []string{task.OnIdle}, Run: "/x"}), asking("b"))
	for i := range v.Jobs {
		v.Jobs[i].State, v.Jobs[i].Attempt, v.Jobs[i].GPUs = sched.Active, sched.Running, []sched.GPUID{0, 1}
	}
	var w IdleWatch
	start := time.Unix(1e9, 0)
	for _, c := range []struct {
		minute int
		use    float64
		idle   bool
	}{{0, 0, false}, {9, 0.02, false}, {10, 0.02, true}, {11, 0, true}, {12, 0.5, false}, {13, 0, false},
		{22, 0, false}, {23, 0, true}, {24, -1, false}} {
		use := func(g sched.GPUID) float64 { return c.use * float64(g) }
		if c.use < 0 {
			use = func(sched.GPUID) float64 { return -1 }
		}
		got := w.Look(v, use, start.Add(time.Duration(c.minute)*time.Minute))
		if (len(got) == 1 && got[0] == 0) != c.idle || len(got) > 1 {
			t.Errorf("minute %d: %v, want %v", c.minute, got, c.idle)
		}
	}
	var b box
	b.load("", slog.New(slog.DiscardHandler), start)
	h := about(v, 0)
	h.words = []string{task.OnIdle}
	if b.idleAgain(&h) || !b.idleAgain(&h) {
		t.Error("heard of an attempt twice, or not at all")
	}
	if h.attempt++; b.idleAgain(&h) {
		t.Error("the next attempt is not heard of")
	}
}

// Ensure that a mail goes to its address by sendmail, and that what a job says of itself makes no header.
func TestMail(t *testing.T) {
	t.Parallel()
	text := string(mail(&task.Notify{Mail: "ann@lab.example"}, &Notice{Job: 3, Name: "a", Outcome: task.OnFailed,
		ExitCode: 2, Text: "x\nBcc: eve", Also: map[string]int{"preempted": 2}}))
	head, body, _ := strings.Cut(text, "\n\n")
	if head != "To: ann@lab.example\nSubject: job 3 (a) failed\nAuto-Submitted: auto-generated\nMIME-Version: 1.0\n"+
		"Content-Type: text/plain; charset=utf-8" || !strings.HasPrefix(body, "Exit code 2.\nx\nBcc: eve\nHeld back "+
		"since the last notice: 2 x preempted.\n") {
		t.Errorf("%s", text)
	}
	text = string(mail(&task.Notify{Mail: "ann@lab.example"}, &Notice{Job: 3, Name: "a", Outcome: task.OnFinished,
		Host: "lab\u00e9"}))
	head, body, _ = strings.Cut(text, "\n\n")
	if !strings.Contains(head, "\nSubject: =?utf-8?q?job_3_(a)_has_finished_on_lab=C3=A9?=\n") ||
		body != "job 3 (a) has finished on lab\u00e9\n" {
		t.Errorf("%s", text)
	}
}

// Ensure that why a program could not be run to its end has the last line that it wrote as an error, and that what it
// leaves behind with its output open makes none of what went well.
func TestLastWords(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "say")
	writeProgram(t, path, "#!/bin/sh\nsleep 1000 &\necho first >&2\n"+
		"[ \"$1\" ] || exit 0\nprintf 'no such\\thost\\n\\n' >&2\nexit 3\n")
	if err := program(t.Context(), "", os.Environ(), nil, path); err != nil {
		t.Errorf("%v, want none", err)
	}
	err := program(t.Context(), "", os.Environ(), nil, path, "fail")
	if err == nil || !strings.HasSuffix(err.Error(), "say: exit status 3: no such host") {
		t.Errorf("%v", err)
	}
	cmd := command(t.Context(), "", nil, nil, path)
	said := cmd.Stderr.(*os.File)
	if _, err := said.WriteString("a\n" + strings.Repeat("\u00e9", mostEnding)); err != nil {
		t.Fatal(err)
	}
	if line := lastWords(cmd); len(line) < mostLine-1 || len(line) > mostLine+3 || !utf8.ValidString(line) {
		t.Errorf("line %q", line)
	}
	if _, err := os.Stat(said.Name()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, want no file left", err)
	}
}

// Ensure that a program that delivers in a process which it leaves behind may write errors there.
func TestDeliversBehind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "sendmail")
	writeProgram(t, path, "#!/bin/sh\ncd "+dir+"\n"+
		"{ until [ -e go ]; do sleep 0.02; done; echo delivers >&2; touch done; } </dev/null >/dev/null &\n")
	if err := ran(t.Context(), command(t.Context(), "", os.Environ(), nil, path)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(dir, "done")); err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatal("nothing is delivered")
		}
	}
}

// Ensure that what is asked for twice in one way is heard once, by the first that wants it, and in other ways too.
func TestAlikeWays(t *testing.T) {
	t.Parallel()
	n := New(Options{Log: slog.New(slog.DiscardHandler)})
	h := heard{words: []string{task.OnTimeout, task.OnFailed}, task: asking("a",
		task.Notify{On: []string{task.OnFinished}, Run: "/p"}, task.Notify{Run: "/p"},
		task.Notify{On: []string{task.OnTimeout, task.OnFailed}, Run: "/p"}, task.Notify{Run: "/q"},
		task.Notify{Mail: "ann"}, task.Notify{Mail: "ann"}, task.Notify{Mail: "bob"}).Task}
	var ids []string
	for _, l := range n.letters(&h) {
		ids = append(ids, l.About.ID)
	}
	if want := []string{"0.0-failed-1", "0.0-failed-3", "0.0-failed-4", "0.0-failed-6"}; !slices.Equal(ids, want) {
		t.Errorf("%q, want %q", ids, want)
	}
}
