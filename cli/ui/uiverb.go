package ui

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/cli/client"
	"github.com/trainyard/trainyard/cli/term"
)

// uiFlags are the flags of ui as given.
type uiFlags struct {
	target   client.Target
	port     int
	open     bool
	readOnly bool
}

// Verbs returns the verb that shows a host in a browser.
func Verbs() []*cobra.Command {
	var f uiFlags
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Show a host in a browser, until it is stopped",
		Long: `Serves a page on this machine's loopback, and prints a link to it. The page
shows what jobs hold, wait for and lost, and changes what you may change: it
asks the host as you, as all verbs do.

A link holds once, for 10 minutes. Enter prints another. The page goes on when
the manager is started again.`,
		Example: `  trainyard ui
  trainyard ui --context lab --read-only`,
		Args: term.Exactly(),
		RunE: f.target.Asking(func(cmd *cobra.Command, c *api.Client, _ []string) error { return f.serve(cmd, c) }),
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	f.target.AddFlags(cmd)
	fs.IntVar(&f.port, "port", 0, "`PORT` of the loopback (default: one that is free)")
	fs.BoolVar(&f.open, "open", false, "open the link in a browser")
	fs.BoolVar(&f.readOnly, "read-only", false, "change nothing, whatever you may")
	return []*cobra.Command{cmd}
}

// mostPort is the largest number of a port.
const mostPort = 65535

// serve serves the page until it is interrupted.
func (f *uiFlags) serve(cmd *cobra.Command, c *api.Client) error {
	if f.port < 0 || f.port > mostPort {
		return term.Usagef("--port %d, want 1 to %d, or 0 for one that is free", f.port, mostPort)
	}
	if _, err := c.Info(cmd.Context()); err != nil {
		return err
	}
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(f.port)))
	if err != nil {
		return term.Refusedf("--port %d: %w; leave it out for one that is free", f.port, err)
	}
	page := newForwarder(c, f.readOnly)
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	s := &http.Server{Handler: page, ReadHeaderTimeout: api.Patience, IdleTimeout: time.Minute,
		MaxHeaderBytes: api.MaxHeaders, DisableGeneralOptionsHandler: true, ErrorLog: log.New(io.Discard, "", 0),
		BaseContext: func(net.Listener) context.Context { return ctx }}
	over := make(chan error, 1)
	go func() { over <- s.Serve(l) }()
	defer f.greet(cmd, page, l.Addr())()
	go f.more(cmd, page, l.Addr())
	select {
	case <-ctx.Done():
		_ = s.Close()
		return nil
	case err = <-over:
		return err
	}
}

// greet prints the first link, and how to reach it from elsewhere. What is left of opening it is removed by clean.
func (f *uiFlags) greet(cmd *cobra.Command, page *forwarder, at net.Addr) (clean func()) {
	link := linkTo(page, at)
	fmt.Fprintln(cmd.OutOrStdout(), link)
	port := at.(*net.TCPAddr).Port
	if os.Getenv("SSH_CONNECTION") != "" {
		name, _ := os.Hostname()
		fmt.Fprintf(cmd.ErrOrStderr(), "trainyard: from your own machine, first: ssh -L %d:127.0.0.1:%d %s\n", port,
			port, name)
	}
	fmt.Fprintln(cmd.ErrOrStderr(), "trainyard: the link holds once, for 10 minutes; Enter prints another, Ctrl-C ends")
	if !f.open {
		return func() {}
	}
	clean, err := openLink(cmd.Context(), link)
	if err != nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "trainyard: --open: %v; open the link yourself\n", err)
	}
	return clean
}

func linkTo(page *forwarder, at net.Addr) string {
	return fmt.Sprintf("http://%s/#k=%s", at, page.keys.link())
}

// more prints another link at each line of input.
func (f *uiFlags) more(cmd *cobra.Command, page *forwarder, at net.Addr) {
	lines := bufio.NewScanner(cmd.InOrStdin())
	for lines.Scan() {
		fmt.Fprintln(cmd.OutOrStdout(), linkTo(page, at))
	}
}

// openLink has a browser open a link. The secret is in a file that no one else reads, not in the arguments of a
// program, which all users see. The file is removed after a minute, or by clean if that is earlier.
func openLink(ctx context.Context, link string) (clean func(), err error) {
	dir, err := os.MkdirTemp("", "trainyard-ui-")
	if err != nil {
		return func() {}, err
	}
	clean = func() { _ = os.RemoveAll(dir) }
	path := filepath.Join(dir, "open.html")
	text := "<!DOCTYPE html><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"0;url=" + link + "\">" +
		"<title>Trainyard</title>\n"
	err = os.WriteFile(path, []byte(text), 0o600)
	if err != nil {
		return clean, err
	}
	time.AfterFunc(time.Minute, clean)
	program := "xdg-open"
	if runtime.GOOS == "darwin" {
		program = "open"
	}
	err = exec.CommandContext(ctx, program, path).Start()
	return clean, err
}
