package term

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"syscall"
)

// Interruptible returns a context that the signals to end cancel, but for those that are ignored, as SIGHUP is under
// nohup. A second signal ends the program at once; not so a second SIGHUP, for a terminal that closes may well send
// two.
func Interruptible() (context.Context, context.CancelFunc) {
	signals := slices.DeleteFunc([]os.Signal{os.Interrupt, syscall.SIGHUP}, signal.Ignored)
	signals = append(signals, syscall.SIGTERM)
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	context.AfterFunc(ctx, func() {
		signal.Ignore(syscall.SIGHUP)
		stop()
	})
	return ctx, stop
}
