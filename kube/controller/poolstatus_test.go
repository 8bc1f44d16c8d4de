package controller

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver"
)

// Ensure that what an earlier leader said of a pool is taken back, what is wrong with one is said, and what the driver
// says is written over by no one, whenever it does.
func TestPoolMessageHasOneWriter(t *testing.T) {
	pool := func(name, says string) *v1alpha1.GPUPool {
		return &v1alpha1.GPUPool{ObjectMeta: metav1.ObjectMeta{Name: name},
			Status: v1alpha1.GPUPoolStatus{Message: says},
			Spec: v1alpha1.GPUPoolSpec{GPUType: "GPU", GPUsPerNode: 2, Max: 1, PricePerGPUHour: resource.MustParse("1"),
				Provider: v1alpha1.ProviderRef{Kind: "scale", Name: "x"}}}
	}
	const trouble = "no quota"
	synctest.Test(t, func(t *testing.T) {
		figures := 0
		api := interceptor.NewClient(apiWith("fifo", v1alpha1.Count, nodeOf("a"), pool("a", "what was"),
			pool("b", "")).(client.WithWatch), interceptor.Funcs{
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch,
				opts ...client.SubResourcePatchOption) error {
				body, err := p.Data(o)
				if _, of := o.(*v1alpha1.GPUPool); of && err == nil && strings.Contains(string(body), `"rented"`) {
					figures++
				}
				return c.SubResource(sub).Patch(ctx, o, p, opts...)
			}})
		message := func(name string) string {
			p := pool(name, "")
			if err := api.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
				t.Fatal(err)
			}
			return p.Status.Message
		}
		begun(t, api, time.Minute, func(d *driver.Driver) Driver {
			if is := message("a"); is != "" {
				t.Errorf("a says still: %q", is)
			}
			if is := message("b"); !strings.HasPrefix(is, "rents from scale x as pool a does") {
				t.Errorf("b says %q", is)
			}
			if err := patchPool(t.Context(), api, "a", map[string]any{"message": trouble}); err != nil {
				t.Error(err)
			}
			return d
		})
		if is := message("a"); is != trouble || figures == 0 {
			t.Errorf("a says %q in the end, want %q; %d writes of its figures", is, trouble, figures)
		}
	})
}
