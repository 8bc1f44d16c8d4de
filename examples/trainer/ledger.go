package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// identity says who runs where, for the ledger. Names are escaped, so that each is one word and one file name.
type identity struct {
	dir     string // "" for no ledger
	job     string
	attempt string // "-" if unknown
	devices []string
}

func identityFrom(getenv func(string) string) (identity, error) {
	id := identity{dir: getenv("TRAINER_LEDGER"), attempt: "-"}
	if id.dir == "" {
		return id, nil
	}
	id.job = url.PathEscape(getenv("TRAINYARD_JOB_ID"))
	if id.job == "" {
		return id, errors.New("TRAINER_LEDGER is set, so TRAINYARD_JOB_ID must be")
	}
	if attempt := getenv("TRAINYARD_ATTEMPT"); attempt != "" {
		id.attempt = url.PathEscape(attempt)
	}
	for name := range strings.SplitSeq(getenv("TRAINYARD_DEVICES"), ",") {
		if name = strings.TrimSpace(name); name != "" {
			id.devices = append(id.devices, url.PathEscape(name))
		}
	}
	return id, nil
}

// ledger is the witness that tests compare a driver's belief with: what the processes themselves saw. While a run lives
// it holds a lock on its job and on each of its devices, which ends with the process however it dies; so two runs that
// overlap are found, even where the driver has forgotten one of them.
//
// All runs append to ledger.log, one line and one write for each record:
//
//	start JOB ATTEMPT PID START BOOT NANOS DEVICES   the locks are held; START is field 22 of /proc/PID/stat, in ticks
//	                                                 since the boot of that id, which distinguishes two processes of one
//	                                                 PID; DEVICES are separated by commas, "-" for none
//	resume JOB ATTEMPT PID STEP NANOS                a checkpoint was loaded
//	overlap JOB ATTEMPT PID LOCK NANOS               another process holds LOCK; this run had no start and has no end
//	end JOB ATTEMPT PID CODE STEP NANOS              the process is about to exit with CODE, its locks still held
//
// NANOS is the wall clock in nanoseconds since 1970. A run that was killed has a start without an end.
type ledger struct {
	id    identity
	log   *os.File
	locks []*os.File // open until the process ends
}

// errOverlap says that another live process has the same job or device. errHeld is how lock says so.
var (
	errOverlap = errors.New("in use by another process")
	errHeld    = errors.New("lock is held")
)

// openLedger takes the locks and records the start. Without a folder it returns nil, on which all methods do
// nothing.
func openLedger(id identity) (*ledger, error) {
	if id.dir == "" {
		return nil, nil
	}
	log, err := os.OpenFile(filepath.Join(id.dir, "ledger.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return nil, err
	}
	l := &ledger{id: id, log: log}
	names := []string{"job-" + id.job}
	for _, d := range id.devices {
		names = append(names, "device-"+d)
	}
	for _, name := range names {
		if err := l.hold(name + ".lock"); err != nil {
			return nil, err
		}
	}
	return l, l.begin()
}

func (l *ledger) hold(name string) error {
	f, err := lock(filepath.Join(l.id.dir, name))
	if errors.Is(err, errHeld) {
		return errors.Join(fmt.Errorf("%s: %w", name, errOverlap), l.record("overlap", name))
	}
	l.locks = append(l.locks, f)
	return err
}

func (l *ledger) begin() error {
	start, boot, err := processStart()
	if err != nil {
		return err
	}
	devices := strings.Join(l.id.devices, ",")
	if devices == "" {
		devices = "-"
	}
	return l.append("start", start, boot, time.Now().UnixNano(), devices)
}

func (l *ledger) resume(step int) error { return l.record("resume", step) }

func (l *ledger) end(code, step int) error { return l.record("end", code, step) }

// record appends a line that ends with the time.
func (l *ledger) record(kind string, fields ...any) error {
	return l.append(kind, append(fields, time.Now().UnixNano())...)
}

func (l *ledger) append(kind string, fields ...any) error {
	if l == nil {
		return nil
	}
	line := append([]any{kind, l.id.job, l.id.attempt, os.Getpid()}, fields...)
	_, err := l.log.WriteString(fmt.Sprintln(line...))
	return err
}

// processStart returns when this process started, in clock ticks since boot, and the id of that boot.
func processStart() (ticks, boot string, err error) {
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return "", "", err
	}
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", "", err
	}
	ticks, err = startTicks(string(stat))
	return ticks, strings.TrimSpace(string(id)), err
}

// startTicks returns field 22 of a stat line of proc(5). Field 2 is the command's name in parentheses, which may itself
// hold spaces and parentheses, so fields are counted from its end.
func startTicks(stat string) (string, error) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	const first = 3 // the number of fields[0]
	if len(fields) <= 22-first {
		return "", fmt.Errorf("/proc/self/stat: %q has no field 22", stat)
	}
	return fields[22-first], nil
}
