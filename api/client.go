package api

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Client asks a manager. All may use it at any time. Its errors wrap those of this package, or that of the context.
type Client struct {
	base   string // scheme and host
	token  string
	name   string // what it is called in errors
	http   *http.Client
	slow   *http.Client // for what takes long to be durable, or to be decided again
	folder *os.File     // of the state, where the socket lies; nil over the network
	away   absence
}

// silence is how long a manager that is there may say nothing.
const silence = Patience + 5*time.Second

// Dial returns a client of the manager of a state folder. The first request returns ErrNoManager where there is none. A
// folder that is not there is an error that wraps fs.ErrNotExist.
func Dial(dir string) (*Client, error) {
	folder, address, err := Socket(dir)
	if err != nil {
		return nil, err
	}
	c := &Client{base: "http://" + HostName, name: dir, folder: folder}
	c.via(&http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return DialSocket(ctx, folder, address)
	}})
	return c, nil
}

// DialNetwork returns a client of the manager that listens at an address, host:port. config says whom to trust and,
// where there is no token, has the client's certificate.
func DialNetwork(address, token string, config *tls.Config) *Client {
	c := &Client{base: "https://" + address, token: token, name: address}
	c.via(&http.Transport{TLSClientConfig: config, TLSHandshakeTimeout: Patience})
	return c
}

// via makes the ways on which c asks.
func (c *Client) via(t *http.Transport) {
	t.MaxIdleConns, t.IdleConnTimeout, t.ResponseHeaderTimeout = 4, time.Minute, silence
	c.http = &http.Client{Transport: t, CheckRedirect: noRedirect}
	t = t.Clone()
	t.ResponseHeaderTimeout = max(Submitting, Explaining) + silence
	c.slow = &http.Client{Transport: t, CheckRedirect: noRedirect}
}

// noRedirect keeps a token from being sent elsewhere.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Close ends what the client keeps open.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	c.slow.CloseIdleConnections()
	if c.folder == nil {
		return nil
	}
	return c.folder.Close()
}

// Info returns who answers.
func (c *Client) Info(ctx context.Context) (doc Info, err error) {
	err = c.get(ctx, "/v1/info", &doc)
	return doc, err
}

// Filter says which jobs are wanted; the zero value: all.
type Filter struct {
	States []string // any of them; nil = all
	User   string   // "" = all
	Limit  int      // the latest; 0 = all
	// Ahead bounds the look into the future, for start and end of each job that is not done, see AsSuits; 0 = none.
	Ahead time.Duration
}

// query is f as a query of a path.
func (f *Filter) query() url.Values {
	q := url.Values{}
	if len(f.States) > 0 {
		q.Set("state", strings.Join(f.States, ","))
	}
	if f.User != "" {
		q.Set("user", f.User)
	}
	if f.Limit > 0 {
		q.Set("limit", strconv.Itoa(f.Limit))
	}
	if f.Ahead != 0 {
		q.Set("ahead_ms", strconv.FormatInt(f.Ahead.Milliseconds(), 10))
	}
	return q
}

// Jobs returns how the jobs stand.
func (c *Client) Jobs(ctx context.Context, f Filter) (doc Jobs, err error) {
	q := f.query()
	err = c.get(ctx, "/v1/jobs?"+q.Encode(), &doc)
	if f.Ahead != 0 && errors.Is(err, ErrMalformed) { // a manager from before there was that
		q.Del("ahead_ms")
		err = c.get(ctx, "/v1/jobs?"+q.Encode(), &doc)
	}
	return doc, err
}

// Job returns how a job stands; it is named by its number or name, as everywhere.
func (c *Client) Job(ctx context.Context, job string) (doc Job, err error) {
	err = c.get(ctx, jobPath(job, ""), &doc)
	return doc, err
}

// Wait returns how a job stands once it is done. Where too many streams are open it asks again until there is room.
func (c *Client) Wait(ctx context.Context, job string) (doc Job, err error) {
	for tries := 0; ; {
		err := c.get(ctx, jobPath(job, "wait")+"?seconds=10", &doc)
		if errors.Is(err, ErrBusy) && ctx.Err() == nil {
			tries++
			rest(ctx, tries)
			continue
		}
		if err != nil || doc.State == "done" {
			return doc, err
		}
		tries = 0
		job = doc.name() // a later job may have the one that was given
	}
}

// Submit hands jobs in, all of them or none. They are durable when it returns.
func (c *Client) Submit(ctx context.Context, in Submission) (doc Submitted, err error) {
	err = c.post(ctx, "/v1/jobs", in, &doc)
	return doc, err
}

// Cancel ends a job, whatever it does at the moment. The request is durable when it returns, like those of all that
// follow; the processes may take their grace still.
func (c *Client) Cancel(ctx context.Context, job string) (doc Job, err error) {
	err = c.post(ctx, jobPath(job, "cancel"), nil, &doc)
	return doc, err
}

// Pause takes a job's GPUs away until it is resumed.
func (c *Client) Pause(ctx context.Context, job string) (doc Job, err error) {
	err = c.post(ctx, jobPath(job, "pause"), nil, &doc)
	return doc, err
}

// Resume lets a paused job wait for GPUs again.
func (c *Client) Resume(ctx context.Context, job string) (doc Job, err error) {
	err = c.post(ctx, jobPath(job, "resume"), nil, &doc)
	return doc, err
}

// Requeue stops a job's attempt and lets it wait for another.
func (c *Client) Requeue(ctx context.Context, job string) (doc Job, err error) {
	err = c.post(ctx, jobPath(job, "requeue"), nil, &doc)
	return doc, err
}

// Nodes returns what jobs run on.
func (c *Client) Nodes(ctx context.Context) (doc Nodes, err error) {
	err = c.get(ctx, "/v1/nodes", &doc)
	return doc, err
}

// Drain has nothing new start on the machine, or lifts that.
func (c *Client) Drain(ctx context.Context, on bool) (doc Nodes, err error) {
	err = c.post(ctx, "/v1/nodes/"+drainVerb(on), nil, &doc)
	return doc, err
}

// DrainNode is Drain for one node of several.
func (c *Client) DrainNode(ctx context.Context, node string, on bool) (doc Nodes, err error) {
	err = c.post(ctx, "/v1/nodes/"+url.PathEscape(node)+"/"+drainVerb(on), nil, &doc)
	return doc, err
}

// DrainGPU is Drain for one GPU or slot, by its name or number.
func (c *Client) DrainGPU(ctx context.Context, gpu string, on bool) (doc Nodes, err error) {
	err = c.post(ctx, "/v1/gpus/"+url.PathEscape(gpu)+"/"+drainVerb(on), nil, &doc)
	return doc, err
}

// ForgetGPU has a GPU or slot that is missing count no more, by its name or number. ErrInUse if it is there, or a job
// holds it.
func (c *Client) ForgetGPU(ctx context.Context, gpu string) (doc Nodes, err error) {
	err = c.post(ctx, "/v1/gpus/"+url.PathEscape(gpu)+"/forget", nil, &doc)
	return doc, err
}

func drainVerb(on bool) string {
	if on {
		return "drain"
	}
	return "undrain"
}

// WriteLog writes the log so far, which trainyard replay reads. The values of variables are hidden in it.
func (c *Client) WriteLog(ctx context.Context, w io.Writer) error {
	resp, err := c.Do(ctx, http.MethodGet, "/v1/log", nil, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(w, resp.Body)
	return err
}

// name names j, and no other job, in a request.
func (j *Job) name() string {
	if j.ID < 0 {
		return j.Ref
	}
	return strconv.Itoa(j.ID)
}

// jobPath is the path of a job, or of something of it.
func jobPath(job, part string) string {
	path := "/v1/jobs/" + url.PathEscape(job)
	if part != "" {
		path += "/" + part
	}
	return path
}

// maxAnswer bounds an answer: 100,000 jobs fit many times.
const maxAnswer = 1 << 30

func (c *Client) get(ctx context.Context, path string, doc any) error {
	return c.ask(ctx, http.MethodGet, path, nil, doc)
}

func (c *Client) post(ctx context.Context, path string, body, doc any) error {
	var b []byte
	if body != nil {
		var err error
		if b, err = json.Marshal(body); err != nil {
			return err
		}
		if long := checkLength(b); long != nil {
			return long
		}
	}
	return c.ask(ctx, http.MethodPost, path, b, doc)
}

// checkLength refuses what is too long to be sent: a server that refuses to read it may not get to say so.
func checkLength(body []byte) error {
	if len(body) > MaxJobs {
		return fmt.Errorf("%w: %d bytes are to be sent, want at most %d", ErrMalformed, len(body), MaxJobs)
	}
	return nil
}

// ask asks for a document. Where nothing is changed it asks again while the manager is away.
func (c *Client) ask(ctx context.Context, method, path string, body []byte, doc any) error {
	if method != http.MethodGet {
		return c.askOnce(ctx, method, path, body, doc)
	}
	return c.again(ctx, func() error { return c.askOnce(ctx, method, path, body, doc) })
}

// again asks for something that changes nothing, until it is answered while the manager is away.
func (c *Client) again(ctx context.Context, ask func() error) error {
	for tries := 1; ; tries++ {
		err := ask()
		if hungUp(err, tries) && ctx.Err() == nil {
			rest(ctx, tries)
			continue
		}
		if !c.away.outlasts(ctx, err) {
			return err
		}
	}
}

func (c *Client) askOnce(ctx context.Context, method, path string, body []byte, doc any) error {
	return c.askWith(ctx, method, path, body, nil, doc)
}

func (c *Client) askWith(ctx context.Context, method, path string, body []byte, header http.Header, doc any) error {
	return c.asked(ctx, method, path, body, header, func(resp *http.Response) error {
		return json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(doc)
	})
}

// asked asks once and has the answer read.
func (c *Client) asked(ctx context.Context, method, path string, body []byte, header http.Header,
	read func(*http.Response) error) error {
	resp, err := c.Do(ctx, method, path, body, header)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if bad := read(resp); bad != nil {
		return c.failed(ctx, fmt.Errorf("its answer: %w", bad))
	}
	return nil
}

// Do asks for something by its path. An answer that is a problem is an error; any other is to be closed.
func (c *Client) Do(ctx context.Context, method, path string, body []byte, header http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if header != nil {
		req.Header = header.Clone()
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	way := c.http
	if takesLong(method, path) {
		way = c.slow
	}
	resp, err := way.Do(req)
	if err != nil {
		return nil, c.failed(ctx, err)
	}
	if resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusAccepted {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, c.problem(resp)
}

// takesLong reports whether a host may take longer than Patience for a request.
func takesLong(method, path string) bool {
	path, _, _ = strings.Cut(path, "?")
	return path == "/v1/jobs" && method == http.MethodPost || path == cleanPath || path == commandsPath ||
		strings.HasPrefix(path, decisionsPath) || slices.Contains(longPaths, path)
}

// failed is the error of a request that was not answered.
func (c *Client) failed(ctx context.Context, err error) error {
	late, command, stranger := net.Error(nil), (*commandError)(nil), (*strangerError)(nil)
	other := (*tls.CertificateVerificationError)(nil)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &command):
		return fmt.Errorf("%s: %w: %w", c.name, ErrNoManager, command)
	case errors.As(err, &late) && late.Timeout():
		return fmt.Errorf("%s: %w: it does not answer; is it stopped?", c.name, ErrNoManager)
	case errors.As(err, &stranger):
		return fmt.Errorf("%s: %w", c.name, stranger)
	case errors.As(err, &other):
		return fmt.Errorf("%s: %w", c.name, &certificateError{other.Err})
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s: %w: its socket is not open to you", c.name, ErrForbidden)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%s: %w", c.name, ErrNoManager)
	}
	return fmt.Errorf("%s: %w: %w", c.name, ErrNoManager, err)
}

// certificateError is ErrNoManager where a server shows a certificate of another.
type certificateError struct{ why error }

// Error says why, and what to do.
func (e *certificateError) Error() string {
	return fmt.Sprintf("%v that can be trusted: its certificate is not the one wanted (%v); name who signed it by "+
		"`trainyard context add --ca`", ErrNoManager, e.why)
}

// Unwrap returns ErrNoManager and why.
func (e *certificateError) Unwrap() []error { return []error{ErrNoManager, e.why} }

// mostHangUps is how many times in a row a connection may be closed without an answer.
const mostHangUps = 20

// closedBefore is what net/http says, in an error that it does not export, of a connection that was closed before the
// request was written.
const closedBefore = "server closed idle connection"

// hungUp reports whether a request failed so many times, and now since the connection was closed before an answer: that
// may be for want of room, or as the manager died, which the next request shows.
func hungUp(err error, tries int) bool {
	return tries < mostHangUps && err != nil && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE) || strings.Contains(err.Error(), closedBefore))
}

// problem is the error that an answer has.
func (c *Client) problem(resp *http.Response) error {
	p := Problem{Title: resp.Status, Status: resp.StatusCode}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	err := json.NewDecoder(io.LimitReader(resp.Body, MaxBody)).Decode(&p)
	if err != nil || kind != "application/problem+json" {
		return fmt.Errorf("%s: %w: it answers %s", c.name, ErrNoManager, resp.Status)
	}
	p.Status = resp.StatusCode
	if p.Detail == "" {
		p.Detail = resp.Status
	}
	return received(&p)
}
