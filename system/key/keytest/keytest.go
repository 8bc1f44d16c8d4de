// Package keytest holds what is wrong with settings in every way, and the words that say so. Each program that takes
// settings runs its tests over the list: users read the same wherever they gave a key.
package keytest

import (
	"errors"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/system/key"
)

// Case is settings of a system with one fault.
type Case struct {
	Name     string
	System   string
	Settings map[string]string // FOLDER/ stands before the path of a file
	Files    map[string]string // by name in the folder
	Fault    key.Fault
	Want     string // words that the error holds, FOLDER/ again for the folder
}

// Cases are all kinds of faults.
var Cases = []Case{
	{"a key that is near another", "tiresias-las", map[string]string{"tresholds": "1"}, nil, key.Unknown,
		`system: tiresias-las takes no key "tresholds" (did you mean "thresholds"?); it takes `},
	{"a key of another system", "fifo", map[string]string{"month_zone": "UTC"}, nil, key.Unknown,
		`system: fifo takes no key "month_zone"; it takes `},
	{"no number", "fifo", map[string]string{"user_limit": "many"}, nil, key.Value,
		`system: fifo: user_limit="many", want a whole number >= 0`},
	{"no time", "las", map[string]string{"quantum": "inf"}, nil, key.Value,
		`system: las: quantum="inf", want a number >= 0, in seconds, at most a century`},
	{"no penalty", "pal", map[string]string{"locality_penalty": "inf"}, nil, key.Value,
		`locality_penalty="inf", want a number from 0 to 1000000`},
	{"no word of several", "fifo", map[string]string{"placement": "pakced"}, nil, key.Value,
		`system: fifo: placement="pakced", want count, consolidate, packed, yarn, skew (did you mean "packed"?)`},
	{"a model given twice", "boa-exact", map[string]string{"restart_overhead": "a=1,a=2", "budget": "2"}, nil,
		key.Value,
		`restart_overhead="a=1,a=2", want seconds, or MODEL=SECONDS,... and seconds for others, each model once`},
	{"a profile given twice", "tiresias-las", map[string]string{"profiles": "a=FOLDER/x.log,a=FOLDER/y.log"}, nil,
		key.Value,
		`profiles="a=FOLDER/x.log,a=FOLDER/y.log", want MODEL=FILE,... such as vgg16=vgg16.log, each model once`},
	{"no files by model", "tiresias-las", map[string]string{"profiles": "x.log"}, nil, key.Value,
		`profiles="x.log", want MODEL=FILE,... such as vgg16=vgg16.log, each model once`},
	{"a file that is not there", "tiresias-gittins", map[string]string{"distribution": "FOLDER/nowhere.csv"}, nil,
		key.Absent,
		`distribution: open FOLDER/nowhere.csv: no such file or directory; want a file with one column headed ` +
			`duration`},
	{"a damaged file", "tiresias-gittins", map[string]string{"distribution": "FOLDER/bad.csv"},
		map[string]string{"bad.csv": "duration\nlong\n"},
		key.Damaged, `dist: FOLDER/bad.csv: line 2: `},
	{"a damaged checkpoint", "fifo", map[string]string{"profiles": "net=FOLDER/net.safetensors"},
		map[string]string{"net.safetensors": "\x02\x00\x00\x00\x00\x00\x00\x00{}more"}, key.Damaged,
		`checkpoint: FOLDER/net.safetensors: tensors of 0 bytes, want the 4 that follow the header`},
	{"a checkpoint without tensors", "fifo", map[string]string{"profiles": "net=FOLDER/none.safetensors"},
		map[string]string{"none.safetensors": "\x02\x00\x00\x00\x00\x00\x00\x00{}"}, key.Damaged,
		`FOLDER/none.safetensors: checkpoint: 0 tensors, none of them of a floating-point type, want at least one`},
	{"a table with a hole", "pal", map[string]string{"locality": "FOLDER/hole.csv"},
		map[string]string{"hole.csv": "model_or_class,gpus_min,level,penalty\nnet,1,across,2\n"}, key.Damaged,
		`variability: FOLDER/hole.csv: nothing is said of models and classes that are not named, want a row ` +
			`*,1,across,PENALTY, or the key locality_penalty`},
	{"classes without scores", "fifo", map[string]string{"classes": "FOLDER/classes.csv"},
		map[string]string{"classes.csv": "model,class\na,A\n"},
		key.Value, `classes=FOLDER/classes.csv: there are no classes without scores of GPUs; give --variability`},
}

// Abroad are keys that are not for real jobs.
var Abroad = []Case{
	{"a key of the simulated world", "fifo", map[string]string{"start_delay": "5"}, nil, key.Abroad,
		`it belongs to the simulated world; real jobs take the time they take`},
	{"a file of the simulated world", "fifo", map[string]string{"slow_gpus": "FOLDER/slow.csv"}, nil, key.Abroad,
		`it belongs to the simulated world; real jobs take the time they take`},
}

// Run has give take each case. folder is the first part of a path there, and put makes a file, both as the program
// names files.
func Run(t *testing.T, cases []Case, folder string, put func(t *testing.T, name, text string),
	give func(system string, settings map[string]string) error) {
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			for name, text := range c.Files {
				put(t, name, text)
			}
			settings := make(map[string]string, len(c.Settings))
			for k, v := range c.Settings {
				settings[k] = strings.ReplaceAll(v, "FOLDER/", folder)
			}
			want := strings.ReplaceAll(c.Want, "FOLDER/", folder)
			err := give(c.System, settings)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Fatalf("%v: %v, want %s", settings, err, want)
			}
			if fault, ok := key.FaultOf(err); !ok || fault != c.Fault {
				t.Errorf("%v: %v, want a fault of kind %d in it", settings, errors.Unwrap(err), c.Fault)
			}
		})
	}
}
