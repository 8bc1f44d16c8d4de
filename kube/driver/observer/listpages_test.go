package observer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
)

// pagedReader lists numbered jobs, and forgets its state before a page.
type pagedReader struct {
	client.Reader

	count   int
	forgets int // the page before which it does; 0: none
	most    int // of a list
}

func (p *pagedReader) List(_ context.Context, into client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	for _, opt := range opts {
		opt.ApplyToList(&o)
	}
	start := 0
	_, _ = fmt.Sscanf(o.Continue, "%d", &start)
	if o.Continue == fmt.Sprint(p.forgets*PageSize) && p.forgets > 0 {
		err := apierrors.NewResourceExpired("too old")
		err.ErrStatus.ListMeta.Continue = o.Continue + " as of now"
		return err
	}
	list := into.(*v1alpha1.TrainingJobList)
	for i := start; i < p.count && len(list.Items) < int(o.Limit); i++ {
		list.Items = append(list.Items, v1alpha1.TrainingJob{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i)}})
	}
	p.most = max(p.most, len(list.Items))
	if next := start + len(list.Items); next < p.count {
		list.Continue = fmt.Sprint(next)
	}
	return nil
}

// Ensure that all objects are listed once and in pages, also where the API server forgets what it was listing, and that
// an error ends it.
func TestEachPage(t *testing.T) {
	for _, r := range []*pagedReader{{count: 0}, {count: PageSize}, {count: 3*PageSize + 1},
		{count: 3 * PageSize, forgets: 2}} {
		var seen, want []string
		err := EachPage(t.Context(), r, func(page *v1alpha1.TrainingJobList) error {
			for i := range page.Items {
				seen = append(seen, page.Items[i].Name)
			}
			return nil
		})
		for i := range r.count {
			want = append(want, fmt.Sprint(i))
		}
		if err != nil || !slices.Equal(seen, want) || r.most > PageSize {
			t.Errorf("of %d jobs %d are seen, %d at once: %v", r.count, len(seen), r.most, err)
		}
	}
	broken := errors.New("broken")
	pages := 0
	err := EachPage(t.Context(), &pagedReader{count: 2 * PageSize}, func(*v1alpha1.TrainingJobList) error {
		pages++
		return broken
	})
	if !errors.Is(err, broken) || pages != 1 {
		t.Errorf("%d pages, %v", pages, err)
	}
}
