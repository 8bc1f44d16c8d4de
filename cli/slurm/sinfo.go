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

// infoUnused means nothing here.
var infoUnused = unused{"partition/p", "nodes/n", "sort/S", "states/t", "clusters/M", "long/l!", "Node/N!",
	"summarize/s!", "exact/e!", "all/a!", "verbose/v!", "hide!", "local!", "federation!"}

func newSinfo() *cobra.Command {
	var to client.Target
	var format string
	var noHeader bool
	cmd := &cobra.Command{
		Use:     "sinfo",
		Short:   "Show the machine as Slurm's sinfo does",
		Long:    "Shows the machine as the one node of the one partition, as Slurm's sinfo does.",
		Example: `  sinfo -h -o "%n %t %G"`,
		Args:    term.Exactly(),
	}
	cmd.RunE = to.Asking(func(cmd *cobra.Command, c *api.Client, _ []string) error {
		infoUnused.note(cmd)
		doc, err := c.Nodes(cmd.Context())
		if err != nil {
			return err
		}
		text, err := infoText(&doc, format, !noHeader)
		if err != nil {
			return err
		}
		return term.WriteText(cmd.OutOrStdout(), text)
	})
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVarP(&format, "format", "o", "%9P %.5a %.10l %.6D %.6t %N", "`FORMAT`")
	fs.BoolVarP(&noHeader, "noheader", "h", false, "no titles")
	fs.Bool("help", false, "this help")
	infoUnused.define(fs)
	return cmd
}

// nodeState says in a word of Slurm how much of a machine is in use.
func nodeState(doc *api.Nodes) string {
	used := 0
	for i := range doc.GPUs {
		if len(doc.GPUs[i].Jobs) > 0 {
			used++
		}
	}
	switch {
	case doc.Drained && used > 0:
		return "drng"
	case doc.Drained:
		return "drain"
	case used == 0:
		return "idle"
	case used == len(doc.GPUs):
		return "alloc"
	}
	return "mix"
}

// nodeText is what scontrol show node says.
func nodeText(doc *api.Nodes) string {
	return fmt.Sprintf("NodeName=%s\n   Gres=gpu:%d State=%s\n   Partitions=%s\n\n", doc.Node, len(doc.GPUs),
		strings.ToUpper(nodeState(doc)), partition)
}

// infoText is what sinfo says.
func infoText(doc *api.Nodes, format string, titles bool) (string, error) {
	values := map[byte][2]string{'P': {"PARTITION", partition + "*"}, 'R': {"PARTITION", partition},
		'a': {"AVAIL", "up"}, 'l': {"TIMELIMIT", "infinite"}, 'D': {"NODES", "1"}, 't': {"STATE", nodeState(doc)},
		'T': {"STATE", nodeState(doc)}, 'N': {"NODELIST", doc.Node}, 'n': {"HOSTNAMES", doc.Node},
		'G': {"GRES", "gpu:" + strconv.Itoa(len(doc.GPUs))}, 'c': {"CPUS", unknown}, 'm': {"MEMORY", unknown},
		'C': {"CPUS(A/I/O/T)", unknown}, 'f': {"AVAIL_FEATURES", "(null)"}, 'z': {"S:C:T", unknown},
		'E': {"REASON", "none"}}
	var rows [2]strings.Builder
	for rest := format; rest != ""; {
		plain, after, found := strings.Cut(rest, "%")
		rows[0].WriteString(plain)
		rows[1].WriteString(plain)
		if !found {
			break
		}
		digits := strings.TrimPrefix(after, ".")
		n := 0
		for n < len(digits) && '0' <= digits[n] && digits[n] <= '9' {
			n++
		}
		if n == len(digits) {
			return "", term.Usagef("sinfo: -o %s: %% at its end, want a letter", term.ShellWord(format))
		}
		pair, known := values[digits[n]]
		if !known {
			return "", term.Usagef("sinfo: -o: %%%c is not known here, want letters such as P, D, t, N, G", digits[n])
		}
		width, _ := strconv.Atoi(digits[:min(n, 4)])
		for i := range rows {
			rows[i].WriteString(fill(pair[i], width, digits != after))
		}
		rest = digits[n+1:]
	}
	text := strings.TrimRight(rows[1].String(), " ") + "\n"
	if titles {
		text = strings.TrimRight(rows[0].String(), " ") + "\n" + text
	}
	return text, nil
}
