package observer

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// API is where looks read objects.
type API struct {
	Cache  client.Reader // in step with what the queue says
	Server client.Reader // the API server itself; nil: Ask finds nothing
}

// Get reads an object from the cache.
func (a API) Get(ctx context.Context, key types.NamespacedName, o client.Object) (found bool, err error) {
	return get(ctx, a.Cache, key, o)
}

// Ask reads an object from the API server itself. A driver that leads since a moment ago may have a cache that is late:
// what is not in it, though the leader before saw it, may be there still. A driver that only looks on need not know.
func (a API) Ask(ctx context.Context, key types.NamespacedName, o client.Object) (found bool, err error) {
	if a.Server == nil {
		return false, nil
	}
	return get(ctx, a.Server, key, o)
}

func get(ctx context.Context, r client.Reader, key types.NamespacedName, o client.Object) (found bool, err error) {
	err = r.Get(ctx, key, o)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}
