package system

import (
	"github.com/trainyard/trainyard/model/skew"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/place"
	"github.com/trainyard/trainyard/system/key"
)

// placer returns the placement rule asked for.
func placer(s *key.Settings) sched.Placer {
	of := Profiles.Get(s)
	if of == nil {
		of = skew.Of
	}
	limit := PackLimit.Get(s) // looked at under every placement, so that no mistake goes unnoticed
	switch Placement.Get(s) {
	case "count":
		return place.Count{}
	case "packed":
		return place.Packed{}
	case "yarn":
		return place.Yarn{}
	case "skew":
		if limit.learned {
			return place.NewLearnedSkew(of)
		}
		return place.Skew{Of: of, Limit: limit.limit}
	}
	return place.Consolidate{}
}
