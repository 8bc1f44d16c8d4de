package writer

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Ensure that a webhook that is away for too long is one for good, which says what could not be done.
func TestPatience(t *testing.T) {
	t.Parallel()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a-1-0"}}
	away := errors.New("failed calling webhook")
	var hooks patience
	if err := hooks.end(away, p, "bound"); !Transient(err) {
		t.Errorf("%v at once", err)
	}
	hooks = patience(time.Now().Add(-awayTime))
	err := hooks.end(away, p, "bound")
	if want := "pod a-1-0 cannot be bound: failed calling webhook"; Transient(err) || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
