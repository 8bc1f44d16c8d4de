package jobs

import (
	"errors"
	"io"
	"net"
	"os"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/cli/client"
	"github.com/trainyard/trainyard/cli/term"
)

func newConnect() *cobra.Command {
	var state string
	cmd := &cobra.Command{
		Use:   "connect",
		Short: "Carry a connection to the manager here, on stdin and stdout",
		Long: `Forwards stdin to the control socket of the manager, and its answers to stdout,
until one side ends. It is what a context of kind command runs, as in
trainyard context add lab --command 'ssh lab trainyard connect'.`,
		Example: "  ssh lab trainyard connect --state day.state",
		Args:    term.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := client.StateFolder(state)
			if err != nil {
				return err
			}
			folder, address, err := api.Socket(dir)
			if err != nil {
				return client.NoManager(dir, err)
			}
			defer folder.Close()
			conn, err := api.DialSocket(cmd.Context(), folder, address)
			if err != nil {
				return client.NoManager(dir, err)
			}
			return carry(conn.(*net.UnixConn), os.Stdin, cmd.OutOrStdout())
		},
	}
	client.AddState(cmd, &state)
	return cmd
}

// carry copies both ways until the manager closes the connection, or the other end does: then nothing is left to
// answer.
func carry(conn *net.UnixConn, in io.Reader, out io.Writer) error {
	sent := make(chan error, 1)
	go func() {
		_, err := io.Copy(conn, in)
		sent <- errors.Join(err, conn.Close())
	}()
	_, err := io.Copy(out, conn)
	if errors.Is(err, net.ErrClosed) { // by the end of the input
		return <-sent
	}
	return err
}
