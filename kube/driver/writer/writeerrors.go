package writer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fatalError is one that trying again does not mend, whatever it wraps.
type fatalError struct{ error }

// Unwrap returns what it wraps.
func (e fatalError) Unwrap() error { return e.error }

// Fatal returns an error that trying again does not mend.
func Fatal(err error) error { return fatalError{err} }

// retryError is one that may mend itself, whatever it wraps.
type retryError struct{ error }

func retry(err error) error { return retryError{err} }

// Transient reports whether what failed may succeed when it is tried again. What the server refuses because of what the
// object says does not. What could not be asked or answered may: an error that is not the server's is one of the way to
// it.
func Transient(err error) bool {
	var hopeless fatalError
	var hopeful retryError
	switch {
	case errors.As(err, &hopeless) || errors.Is(err, context.Canceled) || IsTooLarge(err):
		return false
	case errors.As(err, &hopeful):
		return true
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true
	}
	switch code := status.Status().Code; {
	case code == 409: // but for those that say something
		return !apierrors.IsAlreadyExists(err)
	case code == 401 || code == 408 || code == 429:
		return true
	default:
		return code == 0 || code >= 500
	}
}

// IsTooLarge reports whether the API server, or etcd behind it, does not take an object because of its size.
func IsTooLarge(err error) bool {
	return apierrors.IsRequestEntityTooLargeError(err) ||
		err != nil && strings.Contains(err.Error(), "etcdserver: request is too large")
}

// refusal says what the API server has against an object, by its name.
func refusal(err error, o client.Object) error {
	if err == nil || Transient(err) {
		return err
	}
	return cannotBe("made", err, o)
}

// awayTime is how long a start waits for a webhook that does not answer. Its GPUs go to others then.
const awayTime = 30 * time.Second

// patience is since when a webhook that is asked about an object does not answer; zero: it does, or none is.
type patience time.Time

// end is the error of a try to do something about an object, such as made or bound: one for good once a webhook is
// away for too long.
func (p *patience) end(err error, o client.Object, done string) error {
	switch since := time.Time(*p); {
	case err == nil || !strings.Contains(err.Error(), "failed calling webhook"):
		*p = patience{}
	case since.IsZero():
		*p = patience(time.Now())
	case time.Since(since) >= awayTime:
		return cannotBe(done, err, o)
	}
	return err
}

func cannotBe(done string, err error, o client.Object) error {
	return Fatal(fmt.Errorf("%s %s cannot be %s: %w", kindOf(o), o.GetName(), done, err))
}

func kindOf(o client.Object) string {
	switch o.(type) {
	case *corev1.Pod:
		return "pod"
	case *corev1.Service:
		return "service"
	case *resourcev1.ResourceClaim:
		return "claim"
	}
	return "object"
}
