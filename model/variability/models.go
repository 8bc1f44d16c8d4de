package variability

import "github.com/trainyard/trainyard/internal/modelname"

// Labels are the names of the published classes, from the most sensitive to slow GPUs (compute-bound) to the least
// (memory-bound).
var Labels = [...]string{"A", "B", "C", "D"}

// entry says of which class a model is; its name is plain: lower case without separators.
type entry struct{ model, class string }

// published is the map that the released code uses.
//
// Source: released code, workload/workload.py.
var published = []entry{
	{"resnet50", "A"},
	{"bert", "B"}, {"gpt2", "B"}, {"dcgan", "B"},
	{"vgg19", "C"},
	{"pointnet", "D"},
}

// Published returns the class of a model in the experiments on Sia-Philly traces, and whether it is known; an unknown
// one is of the most sensitive class, A. Case, '-' and '_' in the name do not matter.
func Published(model string) (class string, known bool) { return lookUp(published, model) }

func lookUp(list []entry, model string) (class string, known bool) {
	for i := range list {
		if modelname.Same(list[i].model, model) {
			return list[i].class, true
		}
	}
	return Labels[0], false
}
