package skew

import "github.com/trainyard/trainyard/internal/modelname"

// Model is what is published about the tensors of one model. Tensors of 1 MB and less are left out.
type Model struct {
	Name      string
	Tensors   int     // how many are larger than 1 MB
	TotalMB   float64 // bytes of these
	LargestMB float64 // bytes of the largest

	alias string // another common way to write Name, "" = none
}

// Skew returns the share of the largest tensor in all bytes.
func (m Model) Skew() float64 { return m.LargestMB / m.TotalMB }

// published holds numbers derived from the tensor lists, which are not repeated here. The models above PackLimit are
// those that the paper says to consolidate. GoogLeNet, which is said not to need it, has no list.
//
// Source: Gu et al., NSDI'19, released simulator, tensor list.
var published = [...]Model{
	{"vgg19", 15, 547.1, 392, ""},
	{"vgg16", 12, 526.8, 392, ""},
	{"vgg11", 9, 506.5, 392, ""},
	{"alexnet", 7, 235.8, 144, ""},
	{"resnet152", 48, 149.6, 9, ""},
	{"resnet101", 35, 119.7, 9, ""},
	{"resnet50", 18, 80.6, 9, ""},
	{"inception4", 81, 132.8, 5.9, "inceptionv4"},
	{"inception3", 21, 56.6, 7.8, "inceptionv3"},
}

// plain holds the skews by their plain names, the usual ones.
var plain = func() map[string]float64 {
	skews := make(map[string]float64)
	for _, m := range published {
		skews[m.Name] = m.Skew()
	}
	return skews
}()

// Of returns the skew of a model by its name and whether it is known. Case, '-' and '_' in the name do not matter:
// "VGG-16" is vgg16, "Inception_v3" inception3. It allocates nothing.
//
// Deviation: a model that is not known gets 0, so that it is never consolidated for its skew; the released simulator
// takes every unknown name for inception3, which comes to the same.
func Of(model string) (skew float64, known bool) {
	if s, ok := plain[model]; ok {
		return s, true
	}
	for i := range published {
		m := &published[i]
		if modelname.Same(m.Name, model) || (m.alias != "" && modelname.Same(m.alias, model)) {
			return m.Skew(), true
		}
	}
	return 0, false
}
