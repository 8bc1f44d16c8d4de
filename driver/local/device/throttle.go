package device

import "strings"

// Throttle is a set of reasons why the clock of a GPU is low: the bits of nvmlClocksEventReasons in nvml.h.
type Throttle uint64

// Reasons, by bit. Idle and the two settings mean no harm.
const (
	ThrottleIdle           Throttle = 1 << iota // nothing runs
	ThrottleSetting                             // application clocks were set
	ThrottlePowerCap                            // the power limit, by software
	ThrottleSlowdown                            // hardware: too hot, or power brake
	ThrottleSyncBoost                           // in step with other GPUs
	ThrottleHot                                 // too hot, by software
	ThrottleHardwareHot                         // too hot, by hardware
	ThrottlePowerBrake                          // the power supply asks for less
	ThrottleDisplaySetting                      // clocks of the display
)

var throttleWords = [...]string{"idle", "setting", "power-cap", "slowdown", "sync-boost", "hot", "hardware-hot",
	"power-brake", "display"}

// String returns the words of the reasons, with commas between; those without a word are left out.
func (t Throttle) String() string {
	var words []string
	for i, w := range throttleWords {
		if t&(1<<i) != 0 {
			words = append(words, w)
		}
	}
	return strings.Join(words, ",")
}
