package progress

import (
	"math"
	"strconv"
)

// Field is a set of facts that a Reading may have.
type Field uint16

// Facts. Saved, Ready and Done say something by being there; each of the others has a value in Reading.
const (
	Step Field = 1 << iota
	Total
	Epoch
	Samples
	Speed
	Loss
	GradSqr
	GradVar
	SavedStep
	Saved // a checkpoint is complete
	Ready // all that was done is saved: the job may be stopped at no loss
	Done  // the training has come to its end

	fields = 12
)

// Reading is what one line says. Has says which of the other fields mean something; all are finite and >= 0.
type Reading struct {
	Has       Field
	Again     bool    // Step counts something else than before: no difference to an earlier one means anything
	Step      int64   // training steps done, since the start or, where the log restarts its count, since this start
	Total     int64   // steps in all; 0 = not known, contrary to what was said before
	Epoch     float64 // epochs complete, and of the next the share that is done, where that is reported
	Samples   int64   // samples seen in all
	Speed     float64 // samples per second, as the job says
	Loss      float64
	GradSqr   float64 // squared norm of the gradient
	GradVar   float64 // variance of the gradient
	SavedStep int64   // steps that the newest checkpoint holds
}

// setWhole gives a whole number to a field. Text that is none, or negative, is passed over.
func (m *Reading) setWhole(f Field, dst *int64, text []byte) {
	if n, ok := whole(text); ok {
		*dst = n
		m.Has |= f
	}
}

// setNumber gives a number to a field, if text is one that is finite and >= 0.
func (m *Reading) setNumber(f Field, dst *float64, text []byte) {
	if x, ok := number(text); ok {
		*dst = x
		m.Has |= f
	}
}

// maxEpochs bounds what is taken for a number of epochs.
const maxEpochs = math.MaxInt32

func (m *Reading) setEpoch(x float64) {
	if x >= 0 && x <= maxEpochs {
		m.Epoch = x
		m.Has |= Epoch
	}
}

// set takes a fact by the name that it has in our own lines and objects. A name that is not known is passed over.
func (m *Reading) set(name, text []byte) {
	switch string(name) {
	case "step":
		m.setWhole(Step, &m.Step, text)
	case "total", "total_steps":
		m.setWhole(Total, &m.Total, text)
	case "epoch":
		if x, ok := number(text); ok {
			m.setEpoch(x)
		}
	case "samples":
		m.setWhole(Samples, &m.Samples, text)
	case "samples_per_sec":
		m.setNumber(Speed, &m.Speed, text)
	case "loss":
		m.setNumber(Loss, &m.Loss, text)
	case "grad_sqr":
		m.setNumber(GradSqr, &m.GradSqr, text)
	case "grad_var":
		m.setNumber(GradVar, &m.GradVar, text)
	}
}

// mark returns the fact that is there or not, by its name.
func mark(name []byte) Field {
	switch string(name) {
	case "saved":
		return Saved
	case "ready":
		return Ready
	case "done":
		return Done
	}
	return 0
}

// settle makes the step of a checkpoint what it is: the training itself may be further by now.
func (m *Reading) settle() {
	if m.Has&Saved != 0 && m.Has&Step != 0 {
		m.SavedStep = m.Step
		m.Has = m.Has&^Step | SavedStep
		m.Step = 0
	}
}

// longest is how many bytes a number may have: enough for any, and few enough that none of it is allocated.
const longest = 32

// digits reads decimal digits, with a point among them if one may be: n over ten to the number of places. It knows none
// but those that an int64 and a float64 hold as they are; ok is false of all others.
func digits(text []byte, point bool) (n int64, places int, ok bool) {
	const most = 15 // 10^15 < 2^53
	if len(text) == 0 || len(text) > most {
		return 0, 0, false
	}
	at := -1
	for i, c := range text {
		switch {
		case c >= '0' && c <= '9':
			n = 10*n + int64(c-'0')
		case c == '.' && point && at < 0 && len(text) > 1:
			at = i
		default:
			return 0, 0, false
		}
	}
	if at >= 0 {
		places = len(text) - 1 - at
	}
	return n, places, true
}

// whole returns text as a whole number >= 0.
func whole(text []byte) (int64, bool) {
	if n, _, ok := digits(text, false); ok {
		return n, true
	}
	if len(text) == 0 || len(text) > longest {
		return 0, false
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	return n, err == nil && n >= 0
}

// number returns text as a finite number >= 0. It takes decimals only. Usual ones are read directly: both sides of a
// division are exact, so that it rounds as it should.
func number(text []byte) (float64, bool) {
	if n, places, ok := digits(text, true); ok {
		return float64(n) / tens[places], true
	}
	if len(text) == 0 || len(text) > longest {
		return 0, false
	}
	for _, c := range text {
		if !ofNumber(c) {
			return 0, false
		}
	}
	x, err := strconv.ParseFloat(string(text), 64)
	return x, err == nil && x >= 0
}

// tens are the powers of ten up to that of most digits.
var tens = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15}
