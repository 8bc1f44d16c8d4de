package system

import (
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/place"
	"github.com/trainyard/trainyard/system/key"
	"github.com/trainyard/trainyard/system/tiresias"
)

// placer returns the placement rule asked for.
func placer(s *key.Settings) sched.Placer {
	models := tiresias.Known{Skew: Profiles.Get(s)}
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
			return models.LearnedPlacement()
		}
		return models.Placement(limit.limit)
	}
	return place.Consolidate{}
}
