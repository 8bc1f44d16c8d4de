package system

import "github.com/trainyard/trainyard/system/key"

// Key declares a setting.
type Key = key.Key

// Settings are the values given to the keys of one system.
type Settings = key.Settings

// NewSettings returns settings with the given values, which it does not copy.
func NewSettings(values map[string]string) *Settings { return key.NewSettings(values) }
