package pal

// Classes is the number of application classes: 0 is A, the one that suffers most from slow GPUs, 3 is D.
const Classes = 4

// Model is what the simulator knows of an application.
type Model struct {
	Name   string
	Class  int     // 0 (A) to Classes-1
	Second float64 // nominal seconds of one iteration, whatever the number of GPUs
}

// Models lists the applications of the Sia-Philly workloads.
//
// Source: released simulator, workload/workload.py. There other models are of class A; their seconds are not known.
var Models = []Model{
	{"resnet50", 0, 0.17540429367763434},
	{"BERT", 1, 0.179},
	{"GPT2", 1, 3.5714},
	{"DCGAN", 1, 0.0469266931},
	{"vgg19", 2, 0.300610341},
	{"PointNet", 3, 0.28125},
}

// modelOf is nil if there is none of that name.
func modelOf(name string) *Model {
	for i := range Models {
		if Models[i].Name == name {
			return &Models[i]
		}
	}
	return nil
}
