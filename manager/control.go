package manager

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/trainyard/trainyard/driver/local"
	"github.com/trainyard/trainyard/manager/jobfile"
	"github.com/trainyard/trainyard/sched"
)

// More errors of Cancel.
var (
	ErrNoManager = errors.New("no trainyard runs there")
	ErrEarly     = errors.New("not handed in yet; try again when it is")
)

// controlPatience is how long a request may take.
const controlPatience = 10 * time.Second

// serve answers requests about the folder's jobs on its socket, which its owner alone can reach.
func (m *Manager) serve(d *local.Driver) (stop func(), err error) {
	address, folder, err := controlSocket(m.o.Dir)
	if err != nil {
		return nil, fmt.Errorf("manager: %w", err)
	}
	_ = os.Remove(address) // of a manager that died; the folder is ours
	l, err := net.Listen("unix", address)
	if err == nil {
		err = os.Chmod(address, 0o600)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("manager: control socket: %w", err), folder.Close())
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/jobs/{job}/cancel", func(w http.ResponseWriter, r *http.Request) { m.cancel(d, w, r) })
	server := &http.Server{Handler: mux, ReadHeaderTimeout: controlPatience}
	go func() { _ = server.Serve(l) }()
	return func() {
		_ = server.Close()
		_ = folder.Close()
	}, nil
}

// controlSocket returns an address of the socket that is short wherever the folder is, valid while folder is open.
func controlSocket(dir string) (address string, folder *os.File, err error) {
	folder, err = os.Open(dir)
	if err != nil {
		return "", nil, err
	}
	return filepath.Join("/proc/self/fd", strconv.Itoa(int(folder.Fd())), "control"), folder, nil
}

// cancel passes the wish on and answers once it is durable.
func (m *Manager) cancel(d *local.Driver, w http.ResponseWriter, r *http.Request) {
	id, known := m.jobNamed(r.PathValue("job"))
	switch {
	case !known && m.expects(r.PathValue("job")):
		http.Error(w, ErrEarly.Error(), http.StatusTooEarly)
		return
	case !known:
		http.Error(w, ErrNoJob.Error(), http.StatusNotFound)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), controlPatience)
	defer cancel()
	for asked := false; ; asked = true {
		row, _, changed := m.board.Row(id)
		switch {
		case row.Cancelled:
			_ = json.NewEncoder(w).Encode(map[string]any{"job": id, "name": row.Name})
			return
		case row.State == sched.Done:
			http.Error(w, fmt.Sprintf("%v (%v)", ErrDone, row.Outcome), http.StatusConflict)
			return
		case !asked:
			d.Command(id, sched.CancelJob)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			http.Error(w, "not done in time", http.StatusGatewayTimeout)
			return
		}
	}
}

// expects reports whether a job of that name is still to be handed in.
func (m *Manager) expects(name string) bool {
	return slices.ContainsFunc(m.o.jobs(), func(j jobfile.Job) bool { return j.Spec.Name == name })
}

// jobNamed finds a job by its name or its number.
func (m *Manager) jobNamed(text string) (sched.JobID, bool) {
	if id, ok := m.board.Find(text); ok {
		return id, true
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return sched.None, false
	}
	_, known, _ := m.board.Row(sched.JobID(n))
	return sched.JobID(n), known
}

// Cancel asks the manager of a folder to end a job, by name or number, whatever it does at the moment. It returns once
// that is durable; the processes may take their grace still. ErrNoManager, ErrNoJob and ErrDone say why not.
func Cancel(ctx context.Context, dir, job string) error {
	address, folder, err := controlSocket(dir)
	if err != nil {
		return err
	}
	defer folder.Close()
	client := http.Client{Timeout: controlPatience + time.Second, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", address)
		}}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://trainyard/v1/jobs/"+url.PathEscape(job)+"/cancel", http.NoBody)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
		return fmt.Errorf("%s: %w: it does not answer; is it stopped?", dir, ErrNoManager)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", dir, ErrNoManager)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	if err != nil {
		return err
	}
	switch resp.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusNotFound:
		return fmt.Errorf("%s: job %q: %w", dir, job, ErrNoJob)
	case http.StatusTooEarly:
		return fmt.Errorf("%s: job %q: %w", dir, job, ErrEarly)
	case http.StatusConflict:
		return fmt.Errorf("%s: job %q: %w", dir, job, ErrDone)
	}
	return fmt.Errorf("%s: job %q: %s", dir, job, text)
}
