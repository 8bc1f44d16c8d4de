package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/api/server"
	"github.com/trainyard/trainyard/cli/client"
	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/manager"
	"github.com/trainyard/trainyard/manager/access"
	"github.com/trainyard/trainyard/manager/kept"
	"github.com/trainyard/trainyard/manager/notify"
)

// serveFlags are the flags of serve as given.
type serveFlags struct {
	runsOn
	network      string
	cert, key    string
	page         bool
	group        int
	notify       string
	keep         term.Days
	keeps        bool // keep was given
	userPriority int32
	restore      string
}

func newServe() *cobra.Command {
	var f serveFlags
	var unit installing
	cmd := &cobra.Command{
		Use: "serve", SuggestFor: []string{"start", "daemon", "server"},
		Short: "Manage this machine: take jobs and run them, until it is stopped",
		Long: `Runs jobs that others submit (` + "`trainyard submit`, `trainyard run`" + `) on the
NVIDIA GPUs of this machine, or on CPU slots where it has none. It needs no root
and no other service; all it knows is in the state folder.

When it stops, is killed or crashes, jobs that run go on, and the next serve of
the folder takes them over. Another --system than last time takes over as well.

It listens on a socket in the folder, which only its owner can reach. --listen
has it listen on the network too, with TLS, for those who have a token.

Jobs run as whoever serves. So a folder is refused if another user but root owns
it, or can write it or a folder on the way to it, and so is --group as root.`,
		Example: `  trainyard serve
  trainyard serve --install
  trainyard serve --slots 4 --system tiresias-las --set '*.min_run=60'`,
		Args: term.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if unit.asked() {
				return unit.run(cmd, &f)
			}
			return f.serve(cmd)
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	client.AddState(cmd, &f.state)
	f.Define(cmd)
	fs.StringVar(&f.network, "listen", "", "`ADDRESS` on the network, as in :7070; needs --tls-cert and --tls-key")
	fs.StringVar(&f.cert, "tls-cert", "", "certificate `FILE` of the address, in PEM")
	fs.StringVar(&f.key, "tls-key", "", "`FILE` of its key")
	fs.BoolVar(&f.page, "page", false, "serve the page of trainyard ui there too; a reader types a token in")
	fs.IntVar(&f.group, "group", -1, "number `GID` of a group whose users may submit jobs and control their own")
	fs.StringVar(&f.notify, "notify", "", "`PROGRAM` to run when a job is done or preempted (docs/guide/jobs.md)")
	fs.StringVar(&f.restore, "restore", "",
		"first fill the state folder, which must be empty, from `FILE` of trainyard backup")
	fs.Int32Var(&f.userPriority, "user-priority", 0,
		"the largest priority `N` that users who are no admins may give their jobs")
	fs.Var(&f.keep, "keep", "remove run folders of jobs that have been done for this `TIME`, as 30d; checkpoints stay")
	unit.define(fs)
	return cmd
}

// serve manages the folder until ctx ends.
func (f *serveFlags) serve(cmd *cobra.Command) error {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // caught: who reads our lines and leaves stops nothing
	dir, err := f.folder(cmd)
	if err != nil {
		return err
	}
	o, err := f.folderOptions(cmd, dir)
	if err != nil {
		return err
	}
	meter := server.NewMeter()
	o.Log = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	o.Sinks, o.Decided = []eventlog.Sink{meter}, meter.Decided
	if f.notify != "" {
		if f.notify, err = f.notified(); err != nil {
			return err
		}
	}
	m, quiet, err := opened(cmd.Context(), &o, f.notify, false)
	if err != nil {
		return err
	}
	defer quiet()
	a := access.Options{Network: f.network, Cert: f.cert, Key: f.key}
	if f.group >= 0 {
		a.Group = &f.group
	}
	network, stop, err := listen(m, meter, &o, a, f.page)
	if err != nil {
		return err
	}
	defer stop()
	err = f.keepSlots(dir)
	if err != nil {
		return err
	}
	fmt.Fprint(cmd.ErrOrStderr(), f.hello(m, f.number(cmd.Context(), m, o.Devices), network))
	err = m.Run(cmd.Context())
	if errors.Is(err, context.Canceled) {
		fmt.Fprintf(cmd.ErrOrStderr(), "trainyard: stopped; %s\n", goOn(m, o.Dir))
		return nil
	}
	return err
}

// opened opens the folder of a manager, and has its users notified, one program of all jobs too, until it is closed.
// last: there may be no next one.
func opened(ctx context.Context, o *manager.Options, program string, last bool) (*manager.Manager, func(), error) {
	host, _ := os.Hostname()
	n := notify.New(notify.Options{Program: program, Dir: o.Dir, Host: host, Log: o.Log, Flush: last})
	o.Sinks, o.Notices = append(o.Sinks, n), n
	m, err := manager.Open(ctx, *o)
	if err != nil {
		n.Stop()
		return nil, nil, managerError(err)
	}
	watched, stop := context.WithCancel(ctx)
	go n.Watch(watched, m)
	return m, func() { stop(); n.Stop(); _ = m.Close() }, nil
}

// folder returns the absolute path of the folder to serve, once the flags and the way to it are found right.
func (f *serveFlags) folder(cmd *cobra.Command) (string, error) {
	if err := term.OnLinux("serve"); err != nil {
		return "", err
	}
	f.keeps = cmd.Flags().Changed("keep")
	if err := f.check(); err != nil {
		return "", err
	}
	dir, err := client.StateFolder(f.state)
	if err != nil {
		return "", err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	return dir, notOurs(access.CheckPath(dir))
}

// notified returns the path of the program of --notify.
func (f *serveFlags) notified() (string, error) {
	path, err := exec.LookPath(f.notify)
	if err != nil {
		return "", term.Usagef("--notify: %w, want a program", err)
	}
	return path, nil
}

// folderOptions are the options of the manager of a folder, which is restored first if it is to be. What the command
// line has wrong is found before that.
func (f *serveFlags) folderOptions(cmd *cobra.Command, dir string) (manager.Options, error) {
	o, err := f.checked(cmd, dir)
	if err != nil || f.restore == "" {
		return o, err
	}
	if err := f.restoreInto(cmd, dir); err != nil {
		return o, err
	}
	return f.checked(cmd, dir) // the folder says how many slots there are
}

// checked are the options of the manager of a folder as it is.
func (f *serveFlags) checked(cmd *cobra.Command, dir string) (o manager.Options, err error) {
	f.begun = kept.Folder(dir).Slots()
	if o, err = f.options(cmd.Context(), cmd); err != nil {
		return o, err
	}
	o.Dir, o.Keep, o.UserPriority = dir, time.Duration(f.keep), f.userPriority
	return o, refused(o.Check(cmd.Context()))
}

// check names the first flag that is wrong.
func (f *serveFlags) check() error {
	if f.network != "" && (f.cert == "" || f.key == "") {
		return term.Usagef("--listen %s, want --tls-cert and --tls-key next to it: tokens never travel in the clear",
			f.network)
	}
	if f.page && f.network == "" {
		return term.Usagef("--page, want --listen next to it; without it, `trainyard ui` shows the page")
	}
	if f.group < -1 || int64(f.group) >= math.MaxUint32 { // which has chown to leave the group alone
		return term.Usagef("--group %d, want the number of a group, from 0 to %d", f.group, uint32(math.MaxUint32-1))
	}
	if keep := time.Duration(f.keep); f.keeps && keep < time.Hour {
		return term.Usagef("--keep %v, want at least 1h, as 30d or 12h", keep)
	}
	if f.group >= 0 && os.Geteuid() == 0 {
		return term.Refusedf("--group %d: this serves as root, so all of that group would run what they like as root; "+
			"serve as another user, or make each a token for --listen", f.group)
	}
	return nil
}

// hello says what is served and what to type first.
func (f *serveFlags) hello(m *manager.Manager, devices int, network string) string {
	h := m.Header()
	var b strings.Builder
	fmt.Fprintf(&b, "trainyard: %s on %s under %s; state in %s\n", cmp.Or(f.took(m), "ready"),
		term.Counted(devices, f.unit),
		h.System, m.Dir())
	b.WriteString(f.otherSlots())
	if !manager.CanLimit() {
		b.WriteString("trainyard: " + manager.NoLimits + "\n")
	}
	b.WriteString(first(f.state))
	if network != "" {
		fmt.Fprintf(&b, "trainyard: listens on %s as well, for those who have a token\n", network)
	}
	return b.String()
}

// first says what to type first, quoted for the shell; state is the folder if one was named.
func first(state string) string {
	option := ""
	if state != "" {
		option = " --state " + term.ShellWord(state)
	}
	return fmt.Sprintf("trainyard: submit jobs by `trainyard submit%s -- python train.py`, look by `trainyard ps%s`\n",
		option, option)
}

// otherSlots says what another number of slots than the folder was served with before means.
func (f *serveFlags) otherSlots() string {
	begun := term.Counted(f.begun, "slot")
	switch {
	case f.begun == 0 || f.unit != "slot" || f.slots == f.begun:
		return ""
	case f.slots < f.begun:
		return fmt.Sprintf("trainyard: --slots %d: of the %s before only so many are used, and jobs that need more "+
			"wait; `trainyard gpus forget` takes the others away for good\n", f.slots, begun)
	case f.budget > 0:
		return fmt.Sprintf("trainyard: --slots %d: with --budget the folder keeps to the %s that it was started with\n",
			f.slots, begun)
	}
	return fmt.Sprintf("trainyard: --slots %d: there were %s before, and the new ones are used from now on\n", f.slots,
		begun)
}

// keepSlots remembers the number of slots, where jobs hold slots.
func (f *serveFlags) keepSlots(dir string) error {
	if f.unit != "slot" {
		return nil
	}
	return kept.Folder(dir).KeepSlots(f.slots)
}

// number returns how many devices are served.
func (f *serveFlags) number(ctx context.Context, m *manager.Manager, devices device.Backend) int {
	h := m.Header()
	if len(h.Pools) > 0 {
		return h.GPUs
	}
	if list, err := devices.List(ctx); err == nil && len(list) > 0 {
		return len(list)
	}
	return h.GPUs
}

// took says what was found in the folder.
func (f *serveFlags) took(m *manager.Manager) string {
	if !m.Resumed() {
		return ""
	}
	rows := m.Board().Rows()
	return fmt.Sprintf("goes on, %s known, %d running", term.Counted(len(rows), "job"), alive(rows))
}

// goOn says how many jobs run although no one manages them.
func goOn(m *manager.Manager, dir string) string {
	switch n := alive(m.Board().Rows()); n {
	case 0:
		return "no job runs, and the next serve of " + dir + " knows them all"
	case 1:
		return "1 job goes on, and the next serve of " + dir + " takes it over"
	default:
		return fmt.Sprintf("%d jobs go on, and the next serve of %s takes them over", n, dir)
	}
}

// Verbs returns the verbs that look after a machine.
func Verbs() []*cobra.Command {
	return []*cobra.Command{
		newServe(),
		newBackup(),
		newDoctor(),
		newProbe(),
	}
}
