// Package logs follows what processes in pods write, through the API server.
package logs

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// Limits: how many logs are opened in a second, and at once after a rest; how much of one is read in a second, what
// comes faster is read later; how long the pauses are before one that ended or failed is opened again.
const (
	opens      = 20
	opensBurst = 50
	readSecond = 1 << 20
	firstPause = time.Second
	lastPause  = 30 * time.Second
)

// Client returns a client for logs alone, on connections of its own. What the API server may send before it is read is
// little: hundreds of logs are read slowly at a time.
func Client(config *rest.Config) (typedcorev1.PodsGetter, error) {
	tls, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	transport, err := rest.HTTPWrappersForConfig(config,
		&http.Transport{TLSClientConfig: tls, Proxy: http.ProxyFromEnvironment,
			ForceAttemptHTTP2: true, HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: streamBuffer}})
	if err != nil {
		return nil, err
	}
	return typedcorev1.NewForConfigAndClient(config, &http.Client{Transport: transport})
}

// streamBuffer is how many bytes of a log may have come and not been read.
const streamBuffer = 64 << 10

// Follower follows any number of logs. Its methods may be called by anybody. It is an attempts.Follower.
type Follower struct {
	pods  typedcorev1.PodsGetter
	rate  flowcontrol.RateLimiter
	pause time.Duration // the first
}

// New returns a Follower that asks for logs by pods.
func New(pods typedcorev1.PodsGetter) *Follower {
	return &Follower{pods, flowcontrol.NewTokenBucketRateLimiter(opens, opensBurst), firstPause}
}

// Follow has text called with all that a container of a pod writes, from the start of what its node still has of
// it, each piece once, in order, with the time at which its line was written by the clock of the node. A connection
// that breaks is made again and goes on where it was. A piece ends where a line does, or where one is longer than the
// buffer; it is text's until it returns. end is called whenever the log is at its end for now: the process has ended
// and its pod perhaps gone, or, rarely, someone on the way went down. Follow returns when ctx is done.
func (f *Follower) Follow(ctx context.Context, pod types.NamespacedName, container string,
	text func(at time.Time, piece []byte), end func()) {
	var c cursor
	for pause := f.pause; f.rate.Wait(ctx) == nil; pause = min(2*pause, lastPause) {
		was := c
		err := f.once(ctx, pod, container, &c, text)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil, apierrors.IsNotFound(err): // there is no more, or none at all
			end()
		}
		if c != was {
			pause = f.pause
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// once reads a log from where c stands to its end.
func (f *Follower) once(ctx context.Context, pod types.NamespacedName, container string, c *cursor,
	text func(time.Time, []byte)) error {
	o := &corev1.PodLogOptions{Container: container, Follow: true, Timestamps: true}
	if !c.at.IsZero() {
		o.SinceTime = &metav1.Time{Time: c.at} // whole seconds on the wire: c knows what comes twice
	}
	in, err := f.pods.Pods(pod.Namespace).GetLogs(pod.Name, o).Stream(ctx)
	if err != nil {
		return fmt.Errorf("logs: %s: %w", pod, err)
	}
	defer in.Close()
	return c.read(&slow{in: in, ctx: ctx}, text)
}

// slow is a reader that gives no more than so much in a second.
type slow struct {
	in  io.Reader
	ctx context.Context

	since time.Time
	n     int
}

// Read waits until there may be more.
func (s *slow) Read(b []byte) (int, error) {
	if past := time.Since(s.since); past >= time.Second {
		s.since, s.n = time.Now(), 0
	} else if s.n >= readSecond {
		select {
		case <-s.ctx.Done():
			return 0, s.ctx.Err()
		case <-time.After(time.Second - past):
		}
		s.since, s.n = time.Now(), 0
	}
	n, err := s.in.Read(b)
	s.n += n
	return n, err
}
