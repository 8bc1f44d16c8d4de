//go:build !linux

package procs

import (
	"context"
	"errors"
	"os/exec"
	"syscall"
)

// Jobs are held together by what only Linux has; elsewhere every function fails with errors.ErrUnsupported, and the
// verbs that need them say so before.

// Group is the processes of a job.
type Group struct{}

// Root returns the control group below which groups are made: there is none.
func Root() string { return "" }

// IsCgroup is false.
func IsCgroup(string) bool { return false }

// New fails.
func New(string, string, string) (*Group, error) { return nil, errors.ErrUnsupported }

// Open returns a group that has no process.
func Open(string, string, string) *Group { return &Group{} }

// Mark is no moment here.
type Mark struct{}

// Now returns no moment.
func Now() Mark { return Mark{} }

// After returns g.
func (g *Group) After(Mark) *Group { return g }

// OutOfMemory is false.
func (*Group) OutOfMemory() bool { return false }

// Limits are what a group may take.
type Limits struct {
	CPUs   float64
	Memory int64
}

// CanLimit is false.
func CanLimit(string) bool { return false }

// Limit fails.
func (*Group) Limit(Limits) error { return errors.ErrUnsupported }

// Memory is unknown.
func (*Group) Memory() (int64, bool) { return 0, false }

// Unlimit does nothing.
func (*Group) Unlimit() {}

// Start fails.
func (*Group) Start(*exec.Cmd) error { return errors.ErrUnsupported }

// Signal fails.
func (*Group) Signal(syscall.Signal) error { return errors.ErrUnsupported }

// Look fails.
func (*Group) Look(syscall.Signal, ...string) ([]Member, error) { return nil, errors.ErrUnsupported }

// Signal fails.
func (*Member) Signal(syscall.Signal) (ended bool, err error) { return false, errors.ErrUnsupported }

// Members fails.
func (*Group) Members() ([]int, error) { return nil, errors.ErrUnsupported }

// Kill fails.
func (*Group) Kill(context.Context) error { return errors.ErrUnsupported }

// Close does nothing.
func (*Group) Close() error { return nil }

// Below does nothing.
func (*Group) Below([]Member) {}

// WithLastArgument finds no process.
func WithLastArgument(string, ...int) []Member { return nil }

// Subreap fails.
func Subreap() error { return errors.ErrUnsupported }

// StartTime fails.
func StartTime(int) (uint64, error) { return 0, errors.ErrUnsupported }

// Lives fails.
func Lives(int, uint64) (bool, error) { return false, errors.ErrUnsupported }

// BootID fails.
func BootID() (string, error) { return "", errors.ErrUnsupported }
