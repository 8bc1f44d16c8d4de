package inputs

import (
	"github.com/trainyard/trainyard/model/skew"
	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/system"
)

// KnowledgeOf reads the files that the keys of a system name. scores are those of the GPUs, nil if there are none.
func KnowledgeOf(settings map[string]string, scores *variability.Scores) (k system.Knowledge, err error) {
	k.Scores = scores
	if path, ok := settings["distribution"]; ok {
		if k.Sizes, err = readSizes(path); err != nil {
			return k, err
		}
	}
	if list, ok := settings["profiles"]; ok {
		skews, faulty := readProfiles(list)
		if faulty != nil {
			return k, faulty
		}
		k.Skew = func(model string) (float64, bool) {
			if x, ok := skews[model]; ok {
				return x, true
			}
			return skew.Of(model)
		}
	}
	if k.Classes, err = readClasses(settings["classes"], scores); err != nil {
		return k, err
	}
	k.Locality, err = readLocality(settings)
	return k, err
}
