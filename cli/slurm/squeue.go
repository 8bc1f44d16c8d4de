package slurm

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/cli/client"
	"github.com/trainyard/trainyard/cli/term"
)

// The only partition, and what stands where nothing is known.
const (
	partition = "main"
	unknown   = "N/A"
)

// column is a column of squeue, with the name that -O knows it by.
type column struct {
	letter byte // of -o
	name   string
	title  string
	value  func(*line) string
}

// columns are those of squeue.
var columns = []column{
	{'i', "jobarrayid", "JOBID", (*line).id},
	{'A', "jobid", "JOBID", func(l *line) string { return strconv.Itoa(l.ID) }},
	{'F', "arrayjobid", "ARRAY_JOB_ID", arrayJob},
	{'K', "arraytaskid", "ARRAY_TASK_ID", arrayTask},
	{'P', "partition", "PARTITION", fixed(partition)},
	{'j', "name", "NAME", (*line).name},
	{'u', "username", "USER", func(l *line) string { return l.User }},
	{'U', "userid", "UID", (*line).userID},
	{'a', "account", "ACCOUNT", func(l *line) string { return l.Group }},
	{'q', "qos", "QOS", fixed("normal")},
	{'t', "statecompact", "ST", func(l *line) string { return l.state().short }},
	{'T', "state", "STATE", func(l *line) string { return l.state().word }},
	{'M', "timeused", "TIME", (*line).used},
	{'l', "timelimit", "TIME_LIMIT", func(l *line) string { return l.limit(false) }},
	{'L', "timeleft", "TIME_LEFT", (*line).left},
	{'D', "numnodes", "NODES", fixed("1")},
	{'C', "numcpus", "CPUS", (*line).cpus},
	{'m', "minmemory", "MIN_MEMORY", (*line).memory},
	{'b', "tres-per-node", "TRES_PER_NODE", (*line).gres},
	{'N', "nodelist", "NODELIST", (*line).nodes},
	{'R', "reasonlist", "NODELIST(REASON)", (*line).where},
	{'r', "reason", "REASON", (*line).reason},
	{'Q', "priorityint", "PRIORITY", func(l *line) string { return strconv.Itoa(l.priority()) }},
	{'p', "priority", "PRIORITY", (*line).share},
	{'S', "starttime", "START_TIME", func(l *line) string { return l.start(unknown) }},
	{'e', "endtime", "END_TIME", func(l *line) string { return at(l.Ended, unknown) }},
	{'V', "submittime", "SUBMIT_TIME", func(l *line) string { return at(l.Submitted, unknown) }},
	{'Y', "schednodes", "SCHEDNODES", fixed("(null)")},
	{'B', "exechost", "EXEC_HOST", (*line).nodes},
	{0, "restartcnt", "RESTART_COUNT", func(l *line) string { return strconv.Itoa(max(l.Attempt-1, 0)) }},
}

// fixed is the value of a column that is the same for all.
func fixed(text string) func(*line) string { return func(*line) string { return text } }

func arrayJob(l *line) string {
	if l.Array == nil {
		return strconv.Itoa(l.ID)
	}
	return strconv.Itoa(l.Array.First)
}

func arrayTask(l *line) string {
	switch {
	case l.Array == nil:
		return unknown
	case l.tasks != "":
		return strings.Trim(l.tasks, "[]")
	}
	return strconv.Itoa(l.Array.Index)
}

// cell is a column as it is to be written, or a text between columns.
type cell struct {
	of    *column // nil: text
	text  string
	width int // 0 = as it is
	right bool
}

// Formats of squeue where none is asked for.
const (
	shortFormat = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
	startFormat = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R"
	longFormat  = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R"
)

// parseFormat reads what -o wants, as "%.18i %j".
func parseFormat(text string) (cells []cell, err error) {
	for text != "" {
		plain, rest, found := strings.Cut(text, "%")
		if plain != "" {
			cells = append(cells, cell{text: plain})
		}
		if !found {
			break
		}
		c := cell{}
		if rest, c.right = strings.CutPrefix(rest, "."); c.right && rest == "" {
			return nil, term.Usagef("-o: %%. at its end, want a letter")
		}
		n := 0
		for n < len(rest) && '0' <= rest[n] && rest[n] <= '9' {
			n++
		}
		c.width, _ = strconv.Atoi(rest[:min(n, 4)])
		if n == len(rest) {
			return nil, term.Usagef("-o: %% at its end, want a letter")
		}
		if rest[n] == '%' {
			cells, text = append(cells, cell{text: "%"}), rest[n+1:]
			continue
		}
		for i := range columns {
			if columns[i].letter == rest[n] {
				c.of = &columns[i]
			}
		}
		if c.of == nil {
			return nil, term.Usagef("-o: %%%c is not known here, want one of %s", rest[n], letters())
		}
		cells, text = append(cells, c), rest[n+1:]
	}
	return cells, nil
}

// letters lists those that -o knows.
func letters() string {
	var b strings.Builder
	for i := range columns {
		if columns[i].letter > 0 {
			b.WriteByte(columns[i].letter)
		}
	}
	return b.String()
}

// parseNames reads what -O wants, as jobid:10,state.
func parseNames(text string) (cells []cell, err error) {
	for _, one := range strings.Split(text, ",") {
		name, width, sized := strings.Cut(strings.TrimSpace(one), ":")
		c := cell{width: 20}
		if sized {
			width, c.right = strings.CutPrefix(width, ".")
			if c.width, err = parseWidth(width); err != nil {
				return nil, term.Usagef("-O: %s, want NAME:WIDTH", term.ShellWord(one))
			}
		}
		for i := range columns {
			if strings.EqualFold(columns[i].name, name) {
				c.of = &columns[i]
			}
		}
		if c.of == nil {
			return nil, term.Usagef("-O: %s is not known here, want names such as jobid, name, state, nodelist",
				term.ShellWord(name))
		}
		cells = append(cells, c)
	}
	return cells, nil
}

// parseWidth reads the width of a column: a number, at most 9999 of which are used.
func parseWidth(text string) (int, error) {
	const most = 9999
	n, err := strconv.ParseUint(text, 10, 31)
	return int(min(n, most)), err
}

// fill writes a text in a width: cut, and filled up.
func fill(text string, width int, right bool) string {
	if width == 0 {
		return text
	}
	if r := []rune(text); len(r) > width {
		text = string(r[:width])
	}
	if right {
		return fmt.Sprintf("%*s", width, text)
	}
	return fmt.Sprintf("%-*s", width, text)
}

// table writes lines, with titles unless they are to be left out.
func table(cells []cell, lines []line, titles bool) string {
	var b strings.Builder
	write := func(value func(*column) string) {
		for i := range cells {
			if c := &cells[i]; c.of == nil {
				b.WriteString(c.text)
			} else {
				b.WriteString(fill(api.Printable(value(c.of)), c.width, c.right))
			}
		}
		b.WriteByte('\n')
	}
	if titles {
		write(func(c *column) string { return c.title })
	}
	for i := range lines {
		write(func(c *column) string { return c.value(&lines[i]) })
	}
	return b.String()
}

// queueFlags are the flags of squeue as given.
type queueFlags struct {
	to                         client.Target
	jobs, users, names, states []string
	format, long               string
	me, noHeader, wide, whole  bool
	start                      bool
}

// queueUnused means nothing here.
var queueUnused = unused{"partition/p", "account/A", "qos/q", "sort/S", "clusters/M", "nodelist/w", "reservation/R",
	"licenses/L", "all/a!", "hide!", "local!", "federation!", "sibling!", "priority/P!", "verbose/v!"}

func newSqueue() *cobra.Command {
	var f queueFlags
	cmd := &cobra.Command{
		Use:   "squeue",
		Short: "List jobs as Slurm's squeue does",
		Long: `Lists jobs that are not done as Slurm's squeue does. CPUs and memory that a job
does not ask for are written as N/A; ` + "`trainyard ps`" + ` says more.`,
		Example: `  squeue --me -t PENDING -o "%i %j %R"`,
		Args:    term.Exactly(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("steps") {
				return term.Refusedf("squeue: --steps: no list of steps is kept here; want squeue, of jobs")
			}
			cells, err := f.cells()
			if err != nil {
				return err
			}
			w, err := newWhich(given{"squeue: -j", f.jobs}, given{"squeue: -u", f.users}, given{"squeue: -n", f.names},
				given{"squeue: -t", f.states})
			if err != nil {
				return err
			}
			if w.me, w.wide, w.start, w.all = f.me, f.wide, f.start, true; len(f.states) == 0 {
				w.states = map[state]bool{pending: true, running: !f.start, completing: !f.start}
			}
			queueUnused.note(cmd)
			return f.to.Asking(func(cmd *cobra.Command, c *api.Client, _ []string) error {
				lines, failed := w.find(cmd.Context(), c)
				if failed != nil {
					return failed
				}
				return term.WriteText(cmd.OutOrStdout(), table(cells, lines, !f.noHeader))
			})(cmd, args)
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringArrayVarP(&f.jobs, "jobs", "j", nil, "`NUMBERS` of jobs, as 12, 12_3 or 12_[0-3], by commas")
	fs.StringArrayVarP(&f.users, "user", "u", nil, "jobs of `USERS`")
	fs.BoolVar(&f.me, "me", false, "jobs of yours")
	fs.StringArrayVarP(&f.names, "name", "n", nil, "jobs with these `NAMES`")
	fs.StringArrayVarP(&f.states, "states", "t", nil, "jobs in `STATES`, as PENDING or R, or all")
	fs.StringVarP(&f.format, "format", "o", "", "`FORMAT`, as \"%i %j %T\"")
	fs.StringVarP(&f.long, "Format", "O", "", "`NAMES` of columns, as jobid:10,state")
	fs.BoolVarP(&f.noHeader, "noheader", "h", false, "no titles")
	fs.BoolVarP(&f.wide, "array", "r", false, "a line for each task of an array")
	fs.BoolVarP(&f.whole, "long", "l", false, "with words of states and limits")
	fs.BoolVar(&f.start, "start", false, "those that wait, and when they are expected to start")
	fs.Bool("help", false, "this help")
	fs.StringP("steps", "s", "", "")
	fs.Lookup("steps").NoOptDefVal = "all"
	_ = fs.MarkHidden("steps") // it is refused
	queueUnused.define(fs)
	return cmd
}

// cells is what is to be written of each job.
func (f *queueFlags) cells() ([]cell, error) {
	switch {
	case f.format != "" && f.long != "":
		return nil, term.Usagef("squeue: -o next to -O, want one of them")
	case f.long != "":
		return parseNames(f.long)
	case f.format != "":
		return parseFormat(f.format)
	case f.start:
		return parseFormat(startFormat)
	case f.whole:
		return parseFormat(longFormat)
	}
	return parseFormat(shortFormat)
}
