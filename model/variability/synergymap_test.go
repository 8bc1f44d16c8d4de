package variability

// synergy is the map that the released code has for the models of Synergy and never uses: there all jobs are class A.
//
// Source: released code, blox/job_state.py.
var synergy = []entry{
	{"alexnet", "A"}, {"res50", "A"}, {"resnet50", "A"},
	{"gnmt", "B"}, {"transformer", "B"}, {"deepspeech", "B"},
	{"res18", "C"}, {"resnet18", "C"},
	{"mobilenet", "D"}, {"mobilenetv2", "D"}, {"shufflenet", "D"}, {"lstm", "D"},
}

// Synergy is Published for the models of the experiments on Synergy traces.
//
// Deviation: in the released code's map unknown models are B; here they are A, as everywhere.
func Synergy(model string) (class string, known bool) { return lookUp(synergy, model) }
