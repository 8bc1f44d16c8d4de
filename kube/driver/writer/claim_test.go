package writer

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/devices"
)

// Ensure that no two attempts want the same name for a claim, whatever their jobs are called.
func TestClaimsHaveNamesOfTheirOwn(t *testing.T) {
	seen := make(map[string]string)
	for _, job := range []string{"a", "a-1", "a-1-1", "a-r1", "a-1-r1", "a-1-r1-1", "a-b", "a-1-b"} {
		for number := int32(1); number <= 2; number++ {
			for _, ranks := range []int{1, 3} {
				a := &Attempt{Key: types.NamespacedName{Name: job}, Number: number, base: baseOf(job, number),
					mode: v1alpha1.Pinned, Ranks: make([]Rank, ranks)}
				for r := range a.Ranks {
					for range 2*MostPerClaim + 1 {
						a.Ranks[r].Devices = append(a.Ranks[r].Devices, new(devices.Device))
					}
					for _, c := range a.Claims(r) {
						if who := a.base + " of " + job; seen[c.Name] != "" && seen[c.Name] != who {
							t.Errorf("claim %s is one of %s and of %s", c.Name, seen[c.Name], who)
						}
						seen[c.Name] = a.base + " of " + job
					}
				}
			}
		}
	}
}
