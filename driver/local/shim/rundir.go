package shim

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/driver/local/beneath"
)

// State is the folder in which a manager keeps what must outlive it:
//
//	epoch             number of the manager that gives orders now
//	devices/NAME      locks of the devices
//	jobs/J/lock       held by the shim of job J while it lives; names the last attempt started
//	jobs/J/checkpoint the job's own
//	jobs/J/odometer.json how its progress is counted and how fast it was
//	jobs/J/A/         run directory of attempt A, see RunDir
//	snapshots/SUM/    script that jobs run as it was, see KeepScript
type State string

// RunDir is the folder of one attempt:
//
//	order.json    what to run, by the manager
//	starting.json who will run it in a moment, by the shim; stays
//	alive.json    who runs it, by the shim; stays
//	control       socket of the shim
//	terminal      socket of its terminal, if it has one
//	output.log    what the job and all it started wrote
//	shim.log      what the shim has to say, usually nothing
//	steps         a byte for each step that srun has started in it, by srun
//	signalled     there once its user sent it the signal that asks to save, when is the file's time, by the manager
//	over.json     how it ended, by the shim; written once no process is left
type RunDir string

// RunDir returns the folder of an attempt.
func (s State) RunDir(job, attempt int32) RunDir {
	return RunDir(filepath.Join(s.Job(job), strconv.Itoa(int(attempt))))
}

// Job returns the folder of a job.
func (s State) Job(job int32) string { return filepath.Join(string(s), "jobs", strconv.Itoa(int(job))) }

// Checkpoint returns the folder that is the job's own.
func (s State) Checkpoint(job int32) string { return filepath.Join(s.Job(job), "checkpoint") }

// Output returns the file to which the job writes.
func (r RunDir) Output() string { return filepath.Join(string(r), "output.log") }

// NoteSignal notes that the job was sent the signal that asks it to save.
func (r RunDir) NoteSignal() error { return os.WriteFile(r.file("signalled"), []byte("\n"), 0o600) }

// signalled is when that was noted last; zero = never.
func (r RunDir) signalled() time.Time {
	info, err := os.Stat(r.file("signalled"))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

func (r RunDir) file(name string) string { return filepath.Join(string(r), name) }

// Order says what a shim is to run.
type Order struct {
	State   State    `json:"state"`
	Job     int32    `json:"job"`
	Attempt int32    `json:"attempt"`
	Epoch   int64    `json:"epoch"` // of the manager that gives the order
	Command []string `json:"command"`
	Dir     string   `json:"dir"`
	Env     []string `json:"env"` // all of it, but for Inherit
	// Inherit is the digest of variables kept apart, see State.KeptEnv, which go before Env[InheritAt]; "" = none
	Inherit   string `json:"inherit,omitempty"`
	InheritAt int    `json:"inherit_at,omitempty"`
	// Modules is the folder in which Python looks for modules first, as its script was there; "" = none
	Modules    string        `json:"modules,omitempty"`
	task.Times               // of this attempt, until another is said
	Ran        time.Duration `json:"ran,omitempty"` // how long earlier attempts ran that count towards a limit
	Devices    []string      `json:"devices"`       // names, locked while the attempt lives
	Shared     bool          `json:"shared"`        // others may lock them shared as well
	// folder of these locks, of the whole machine; "" = State's own
	Locks    string          `json:"locks"`
	Nodes    []string        `json:"nodes,omitempty"`    // by device: see DeviceLock; none = as earlier releases
	Parts    []bool          `json:"parts,omitempty"`    // by device: it is a part of that of the node
	Cgroup   string          `json:"cgroup"`             // under which the group of processes is made; "" = without
	Save     task.Checkpoint `json:"save,omitzero"`      // of it the shim follows all but the folder
	Progress string          `json:"progress,omitempty"` // see task.Task; the manager's own
	Pattern  string          `json:"pattern,omitempty"`  // the same
	// bytes of the disk that the output may take; 0 = none but those of the disk
	MaxOutput int64 `json:"max_output,omitempty"`
	// files of its user that it writes to; nil = none
	Output *UserOutput `json:"output,omitempty"`
	// of the machine that it may take; nil = all
	Limits *Resources `json:"limits,omitempty"`
	// it has a terminal, and ends once that was idle for so long; 0 = none
	Terminal time.Duration `json:"terminal,omitempty"`
}

// Checkpoint returns the folder in which the job saves.
func (o *Order) Checkpoint() string { return cmp.Or(o.Save.Dir, o.State.Checkpoint(o.Job)) }

// signals are those that task.Signals names.
var signals = map[string]syscall.Signal{"": syscall.SIGTERM, "TERM": syscall.SIGTERM, "INT": syscall.SIGINT,
	"HUP":  syscall.SIGHUP,
	"USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2}

// SaveSignal is the signal that asks the job to save.
func (o *Order) SaveSignal() syscall.Signal { return signals[o.Save.Signal] }

// GroupName names the group of processes of an attempt, uniquely on the machine.
func (o *Order) GroupName() string {
	return fmt.Sprintf("trainyard-%016x-%d-%d", stateHash(o.State), o.Job, o.Attempt)
}

// name names an attempt to managers.
func (o *Order) name() string { return fmt.Sprintf("%d/%d", o.Job, o.Attempt) }

// Cookie is the variable by which processes of an attempt are known, wherever they hide.
func (o *Order) Cookie() string { return "TRAINYARD_COOKIE=" + o.GroupName() }

// stateHash distinguishes state folders.
func stateHash(s State) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s)) // it takes everything
	return h.Sum64()
}

// Alive says who runs an attempt. A process is the shim still if boot and start time are the same.
type Alive struct {
	PID       int       `json:"pid"`
	StartTime uint64    `json:"start_time"` // clock ticks since boot, see proc(5)
	BootID    string    `json:"boot_id"`
	Epoch     int64     `json:"epoch"`
	At        time.Time `json:"at"` // when the job's process was started, or about to be
	// AtBoot is the same as time since the machine was booted; 0 = not known.
	AtBoot time.Duration `json:"at_boot,omitempty"`
}

// Over says how an attempt ended.
type Over struct {
	Code      int           `json:"code"`                // exit code; 128 + signal; 126, 127 if there is nothing to run
	Stopped   bool          `json:"stopped"`             // it was asked to end before it did
	Killed    bool          `json:"killed"`              // the grace was over: SIGKILL
	Failed    string        `json:"failed,omitempty"`    // it never started: the machine's fault, said in words
	Suspects  []string      `json:"suspects,omitempty"`  // devices that the failure speaks of
	Grace     time.Duration `json:"grace,omitempty"`     // that was given
	Text      string        `json:"text,omitempty"`      // for people
	TimedOut  bool          `json:"timed_out,omitempty"` // its time was over
	Warned    time.Time     `json:"warned,omitzero"`     // that it soon would be
	reached   bool          // by that warning, some process that handles its signal
	Started   time.Time     `json:"started,omitzero"`
	StopAsked time.Time     `json:"told,omitzero"` // when it was asked to end
	Ended     time.Time     `json:"ended"`
	// StartedBoot and EndedBoot are Started and Ended as time since the machine was booted, as BootID names it.
	StartedBoot time.Duration `json:"started_boot,omitempty"`
	EndedBoot   time.Duration `json:"ended_boot,omitempty"`
	BootID      string        `json:"boot_id,omitempty"`
	Ready       time.Time     `json:"ready,omitzero"` // when it said, having been asked to end, that all is saved
	// Who got the signal, and who was killed once the grace was over: the first ones, and how many in all.
	Asked       []Recipient `json:"asked,omitempty"`
	AskedCount  int         `json:"asked_count,omitempty"`
	KilledOf    []Recipient `json:"killed_of,omitempty"`
	KilledCount int         `json:"killed_count,omitempty"`
}

// WriteOrder leaves the order in its run directory, which it makes. It is the first trace of an attempt on disk, unless
// an earlier attempt of the job has put something there: what is no folder, such as a link to one, is removed.
func WriteOrder(o *Order) error {
	dir := o.State.RunDir(o.Job, o.Attempt)
	if info, err := os.Lstat(string(dir)); err == nil && !info.IsDir() {
		if failed := os.Remove(string(dir)); failed != nil {
			return failed
		}
	}
	if err := os.MkdirAll(string(dir), 0o700); err != nil {
		return err
	}
	if err := os.MkdirAll(o.Checkpoint(), 0o700); err != nil {
		return err
	}
	if err := writeJSON(dir.file("order.json"), o); err != nil {
		return err
	}
	// what the shim writes there is durable only if the names of the folders are
	job := o.State.Job(o.Job)
	return errors.Join(syncDir(job), syncDir(filepath.Dir(job)), syncDir(string(o.State)))
}

// Order reads what WriteOrder left; fs.ErrNotExist if it did not. The job can write there: what it says is what the
// manager ordered only before the job was started.
func (r RunDir) Order() (*Order, error) { return readRecord[Order](r, "order.json", maxOrder) }

// Alive reads who runs the attempt; fs.ErrNotExist if no one has started, ErrTorn if the file is not what a shim
// writes. The job can write there, see Alive.Lives.
func (r RunDir) Alive() (*Alive, error) { return readRecord[Alive](r, "alive.json", maxRecord) }

// Starting reads who was about to run the attempt; fs.ErrNotExist if no one was. Without Alive the job perhaps ran.
func (r RunDir) Starting() (*Alive, error) { return readRecord[Alive](r, "starting.json", maxRecord) }

// Over reads how the attempt ended; fs.ErrNotExist if it has not, or its shim died, ErrTorn if the file is not what a
// shim writes. The job can write there, so that what it says need not be so.
func (r RunDir) Over() (*Over, error) {
	over, err := readRecord[Over](r, "over.json", maxRecord)
	if err == nil && (over.Code < 0 || over.Code > maxCode) {
		return nil, fmt.Errorf("shim: %s: %w: code %d, want from 0 to %d", r.file("over.json"), ErrTorn, over.Code,
			maxCode)
	}
	return over, err
}

// Bounds of what is read of a run directory, in bytes: an order has the environment of its job.
const (
	maxRecord = 64 << 10
	maxOrder  = 32 << 20
)

// maxCode is the highest exit code there is.
const maxCode = 255

// readRecord reads a record of a run directory, which the job can write to: no links are followed from the state folder
// on, and only a file of at most so many bytes is read. Whatever else is there is ErrTorn.
func readRecord[T any](r RunDir, name string, most int64) (*T, error) {
	state, path := r.inState()
	return readJSON[T](state, filepath.Join(path, name), most)
}

// Open opens a regular file of the run directory for reading, whose job may have put anything there: no link is
// followed. Errors are those of beneath.Open.
func (r RunDir) Open(name string) (*os.File, error) {
	state, path := r.inState()
	return beneath.Open(state, filepath.Join(path, name))
}

// Stat describes what has a name in the run directory, and follows no link. Errors are those of beneath.Stat.
func (r RunDir) Stat(name string) (fs.FileInfo, error) {
	state, path := r.inState()
	return beneath.Stat(state, filepath.Join(path, name))
}

// inState returns the state folder of a run directory, and where it is in that.
func (r RunDir) inState() (state, path string) {
	job := filepath.Dir(string(r))
	state = filepath.Dir(filepath.Dir(job))
	return state, filepath.Join(filepath.Base(filepath.Dir(job)), filepath.Base(job), filepath.Base(string(r)))
}

func readJSON[T any](folder, path string, most int64) (*T, error) {
	b, err := beneath.Read(folder, path, most)
	if errors.Is(err, beneath.ErrRefused) {
		err = fmt.Errorf("shim: %w: %w", ErrTorn, err)
	}
	if err != nil {
		return nil, err
	}
	x := new(T)
	if err := json.Unmarshal(b, x); err != nil {
		return nil, fmt.Errorf("shim: %s: %w: %w", filepath.Join(folder, path), ErrTorn, err)
	}
	return x, nil
}

// writeJSON writes a file whole or not at all, durably.
func writeJSON(path string, x any) error {
	b, err := json.Marshal(x)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Save writes a file of the folder whole or not at all, durably.
func (s State) Save(name string, x any) error { return writeJSON(filepath.Join(string(s), name), x) }

// SetEpoch makes epoch the number of the manager that gives orders from now on: orders of earlier ones are refused.
// ErrFenced if a later manager has said so already. A file that holds no number is written again.
func (s State) SetEpoch(epoch int64) error {
	err := s.Fenced(epoch)
	if errors.Is(err, ErrTorn) {
		err = s.Quarantine("epoch")
	}
	if err != nil {
		return err
	}
	return writeJSON(filepath.Join(string(s), "epoch"), epoch)
}

// Unreadable ends the names of what was quarantined in the folder, because it could not be read.
const Unreadable = ".unreadable"

// Quarantine gives what is at a name in the folder another one, in place of what had that before: it cannot be read,
// and is written again.
func (s State) Quarantine(name string) error {
	path := filepath.Join(string(s), name)
	if err := os.RemoveAll(path + Unreadable); err != nil {
		return err
	}
	return os.Rename(path, path+Unreadable)
}

// Fenced returns ErrFenced if the manager of epoch gives no orders any more, because a later one does.
func (s State) Fenced(epoch int64) error {
	now, err := s.Epoch()
	if err == nil && now > epoch {
		err = fmt.Errorf("%w: the folder is at epoch %d, want %d", ErrFenced, now, epoch)
	}
	return err
}

// Served reports whether the folder is there and a manager has served it: one that was removed or moved away says
// nothing of what became of its attempts.
func (s State) Served() bool {
	now, err := s.Epoch()
	return err != nil || now > 0
}

// MaxEpoch is the highest number that a manager has. There is one for each start of a manager.
const MaxEpoch = 1 << 62

// Epoch returns the number of the manager that gives orders, as the file of the managers has it: 0 where there is none,
// ErrTorn where the file holds no number of a manager.
func (s State) Epoch() (int64, error) {
	n, err := readJSON[int64](string(s), "epoch", maxRecord)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, nil
	case err != nil:
		return 0, err
	case *n < 0 || *n > MaxEpoch:
		return 0, fmt.Errorf("shim: %s: %w: %d, want from 0 to %d", filepath.Join(string(s), "epoch"), ErrTorn, *n,
			int64(MaxEpoch))
	}
	return *n, nil
}

// Locks returns the folder of the locks of devices: that of the machine, if there is one, else State's own.
func (s State) Locks(machine string) string {
	if machine != "" {
		return machine
	}
	return filepath.Join(string(s), "devices")
}

// deviceLock returns the lock of the i-th device.
func (o *Order) deviceLock(i int) *DeviceLock {
	l := o.State.DeviceLock(o.Devices[i], o.Locks)
	if i < len(o.Nodes) && i < len(o.Parts) {
		l.Node, l.Part = o.Nodes[i], o.Parts[i]
	}
	return l
}

// DeviceLock returns the lock of a device that has no node; machine is the folder of the locks of the machine, if there
// is one.
func (s State) DeviceLock(device, machine string) *DeviceLock {
	return &DeviceLock{Name: device, Folder: s.Locks(machine), Shared: machine != ""}
}

// machineFolder makes a folder of locks that all users of the machine share.
func machineFolder(folder string) error {
	err := os.Mkdir(folder, 0o777)
	if err == nil {
		err = os.Chmod(folder, 0o777|os.ModeSticky) // whatever the umask
	}
	if errors.Is(err, fs.ErrExist) {
		err = sticky(folder)
	}
	return err
}

// sticky returns an error unless path is a folder in which no one can remove what is another's.
func sticky(path string) error {
	info, err := os.Lstat(path)
	if err == nil && (!info.IsDir() || info.Mode()&os.ModeSticky == 0) {
		err = fmt.Errorf("%s is %v, want a folder that is sticky", path, info.Mode())
	}
	return err
}

// ErrHeld says that someone holds a lock.
var ErrHeld = errors.New("held")

// Held reports whether the shim of a job lives, by its lock.
func (s State) Held(job int32) bool {
	f, err := beneath.Open(string(s), filepath.Join("jobs", strconv.Itoa(int(job)), "lock"))
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK)
}

// Lock takes a file lock that ends with the process; ErrHeld if another has it, ErrTorn if what is there is no file.
func Lock(path string, shared bool) (*os.File, error) {
	f, err := openLock(path)
	if err != nil {
		return nil, err
	}
	how := unix.LOCK_EX
	if shared {
		how = unix.LOCK_SH
	}
	err = unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
	if err == nil {
		return f, nil
	}
	_ = f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, fmt.Errorf("%s: %w", path, ErrHeld)
	}
	return nil, fmt.Errorf("lock %s: %w", path, err)
}

// openLock opens the file of a lock, made readable to all whatever the umask; it follows no link and waits for no one.
func openLock(path string) (*os.File, error) {
	const found = unix.O_NOFOLLOW | unix.O_NONBLOCK
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o644)
	if err == nil {
		return f, f.Chmod(0o644)
	}
	f, err = os.OpenFile(path, os.O_RDWR|found, 0)
	if errors.Is(err, fs.ErrPermission) { // another user's: to lock it is enough to read it
		f, err = os.OpenFile(path, os.O_RDONLY|found, 0)
	}
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EISDIR) || errors.Is(err, unix.ENXIO) {
		err = fmt.Errorf("%w: %w", ErrTorn, err)
	}
	if err == nil {
		err = ours(f)
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// ours returns ErrTorn, and closes the file, if it is none to read from or to write to.
func ours(f *os.File) error {
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is %v: %w", f.Name(), info.Mode(), ErrTorn)
	}
	if err != nil {
		_ = f.Close()
	}
	return err
}

// openAppend opens a file of a run directory, which is made if it is not there, to write to its end: never a link, nor
// a pipe that would wait for a reader.
func openAppend(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err == nil {
		err = ours(f)
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Log opens what the shim of the attempt has to say, see RunDir, to write to its end.
func (r RunDir) Log() (*os.File, error) { return openAppend(r.file("shim.log")) }

// ErrBegun says that an attempt, or a later one, was started already, or may no longer be.
var ErrBegun = errors.New("started already")

// Begin takes the lock of a job for attempt, which can be started once only, by whomever: by its shim, or by a manager
// that wants it never to start. The lock is held until the file is closed. ErrHeld: a shim of the job lives. ErrBegun:
// this attempt was started before, or the file does not say: then it counts as started, and the next one may be.
func (s State) Begin(job, attempt int32) (*os.File, error) {
	if err := os.MkdirAll(s.Job(job), 0o700); err != nil {
		return nil, err
	}
	f, err := Lock(filepath.Join(s.Job(job), "lock"), false)
	if err != nil {
		return nil, err
	}
	last, err := s.lastBegun(job)
	switch torn := errors.Is(err, ErrTorn); {
	case torn:
		if err = errors.Join(f.Truncate(0), mark(f, attempt)); err == nil {
			err = fmt.Errorf("job %d attempt %d: %w, for all that is known", job, attempt, ErrBegun)
		}
	case err == nil && attempt <= last:
		err = fmt.Errorf("job %d attempt %d: %w", job, attempt, ErrBegun)
	case err == nil:
		err = mark(f, attempt)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// mark notes in the lock of a job that an attempt was started, durably: the lock may be new.
func mark(lock *os.File, attempt int32) error {
	if _, err := lock.WriteAt(fmt.Appendf(nil, "%d\n", attempt), 0); err != nil {
		return err
	}
	return errors.Join(lock.Sync(), syncDir(filepath.Dir(lock.Name())))
}

// Rewind makes attempt the last one started of a job that has none alive; 0 = none was. ErrHeld: a shim of it lives.
func (s State) Rewind(job, attempt int32) error {
	path := filepath.Join(s.Job(job), "lock")
	lock, err := Lock(path, false)
	if errors.Is(err, ErrTorn) { // no file: nothing holds it
		return os.RemoveAll(path)
	}
	if err != nil {
		return err
	}
	return errors.Join(lock.Truncate(0), mark(lock, attempt), lock.Close())
}

// ErrTorn says that a file is there, but not what should be in it: it will not get better.
var ErrTorn = errors.New("not what was written")

// Begun reports whether an attempt, or a later one, was started.
func (s State) Begun(job, attempt int32) bool {
	last, err := s.lastBegun(job)
	return err == nil && attempt <= last
}

// lastBegun reads the number of the last attempt started; 0 = none.
func (s State) lastBegun(job int32) (int32, error) {
	path := filepath.Join(s.Job(job), "lock")
	b, err := beneath.Read(string(s), filepath.Join("jobs", strconv.Itoa(int(job)), "lock"), maxRecord)
	if errors.Is(err, beneath.ErrRefused) {
		err = fmt.Errorf("%w: %w", ErrTorn, err)
	}
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(b) == 0 {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 32)
	if err != nil {
		return 0, fmt.Errorf("shim: %s: %q: %w", path, short(string(b)), ErrTorn)
	}
	return int32(n), nil
}
