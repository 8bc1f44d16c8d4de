package observer

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// PageSize is how many objects a list asks the API server for at a time.
const PageSize = 500

// EachPage lists objects in pages of PageSize, so that never more of them are in memory at once, and calls each with
// one page after the other. An error of each ends that. Where the API server has forgotten the state that the list
// started from, which takes minutes, the rest is as of now: what there was at the start and is still there is listed.
func EachPage[L any, P interface {
	*L
	client.ObjectList
}](ctx context.Context, r client.Reader, each func(P) error, opts ...client.ListOption) error {
	for next := ""; ; {
		list := P(new(L))
		err := r.List(ctx, list, append([]client.ListOption{client.Limit(PageSize), client.Continue(next)}, opts...)...)
		switch again := restOf(err); {
		case again != "" && again != next:
			next = again
			continue
		case err != nil:
			return err
		}
		if err := each(list); err != nil {
			return err
		}
		if next = list.GetContinue(); next == "" {
			return nil
		}
	}
}

// restOf returns the token that goes on with a list whose state the API server has forgotten; "": there is none.
func restOf(err error) string {
	var status apierrors.APIStatus
	if !apierrors.IsResourceExpired(err) || !errors.As(err, &status) {
		return ""
	}
	return status.Status().ListMeta.Continue
}
