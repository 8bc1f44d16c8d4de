// Command trainyard-kube schedules the TrainingJobs of a Kubernetes cluster.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/trainyard/trainyard/kube/controller"
	"github.com/trainyard/trainyard/kube/record"
)

const usage = `trainyard-kube schedules the TrainingJobs of a Kubernetes cluster.

  trainyard-kube [flags]            decide, until interrupted
  trainyard-kube manifests [flags]  print what is to be applied to a cluster
  trainyard-kube version            print the version

Flags:
`

// version is set by the linker.
var version = "devel"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(exitCode(err, os.Stderr))
}

// usageError is an error of the command line.
type usageError struct{ error }

// Unwrap returns the error itself.
func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// exitCode prints an error, and returns the exit code that goes with it: 2 for one of the command line, as of
// trainyard, else 1.
func exitCode(err error, errs io.Writer) int {
	wrong := usageError{}
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
		return 0
	case errors.As(err, &wrong):
		fmt.Fprintln(errs, "trainyard-kube:", err)
		return 2
	}
	fmt.Fprintln(errs, "trainyard-kube:", err)
	return 1
}

// parse parses flags. Who asks for help gets it where all else that is asked for goes; text stands before the flags.
func parse(f *flag.FlagSet, args []string, text string, out io.Writer) error {
	f.SetOutput(io.Discard)
	err := f.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		f.SetOutput(out)
		fmt.Fprint(out, text)
		f.PrintDefaults()
		return err
	case err != nil:
		return usagef("%w; %s --help lists the flags", err, f.Name())
	}
	return nil
}

func run(ctx context.Context, args []string, out, errs io.Writer) error {
	var o controller.ServeOptions
	f := flag.NewFlagSet("trainyard-kube", flag.ContinueOnError)
	kubeconfig := f.String("kubeconfig", "", "`file` that names the cluster; default: $KUBECONFIG, or the pod's own")
	f.StringVar(&o.Namespace, "namespace", "trainyard", "`namespace` of the lease and of what else is kept")
	f.BoolVar(&o.Elect, "leader-elect", false, "several of this command may run; one of them decides")
	f.DurationVar(&o.Lease, "lease", 6*time.Second, "`seconds` after which a silent leader leads no more, as 6s")
	f.StringVar(&o.Metrics, "metrics", "", "`address` of the metrics, as :8080; default: none")
	f.StringVar(&o.Health, "health", "", "`address` of /healthz and /readyz, as :8081; default: none")
	f.StringVar(&o.PriorityClass, "priority-class", "trainyard", "`class` of pods that name none; \"\" for none")
	f.BoolVar(&o.Observe, "observe", false, "decide and report what would be done, and write nothing")
	f.IntVar(&o.RecordSchema, "record-schema", record.JobSchema,
		"`schema` of records of jobs; an older one is for going back")
	log := f.String("log", "", "`file` to which events and decisions are added, for trainyard replay")
	verbose := f.Bool("v", false, "report more")
	if err := parse(f, args, usage, out); err != nil {
		return err
	}
	switch f.Arg(0) {
	case "":
	case "manifests":
		return manifests(f.Args()[1:], out)
	case "version":
		return printVersion(f.Args()[1:], out)
	default:
		return usagef("unknown command %q, want manifests, version or none", f.Arg(0))
	}
	if o.Lease < time.Second || o.Lease%time.Second != 0 { // as the API has it
		return usagef("--lease %v, want whole seconds, 1s or more", o.Lease)
	}
	level := slog.LevelInfo
	if *verbose {
		level = slog.LevelDebug
	}
	if o.RecordSchema < record.OldJobSchema || o.RecordSchema > record.JobSchema {
		return usagef("--record-schema %d, want %d to %d", o.RecordSchema, record.OldJobSchema, record.JobSchema)
	}
	o.Log, o.Version = slog.New(slog.NewTextHandler(errs, &slog.HandlerOptions{Level: level})), version
	if *log != "" {
		file, err := openLog(*log)
		if err != nil {
			return err
		}
		defer file.Close()
		o.Record = file
	}
	c, err := clusterConfig(*kubeconfig)
	if err != nil {
		return err
	}
	return controller.Serve(ctx, c, o)
}

// printVersion prints what was built, and by what.
func printVersion(args []string, out io.Writer) error {
	if len(args) > 0 {
		return usagef("version: unexpected %q, want nothing", args[0])
	}
	_, err := fmt.Fprintf(out, "trainyard-kube %s, %s %s/%s\n", version, runtime.Version(), runtime.GOOS,
		runtime.GOARCH)
	return err
}

// clusterConfig finds the cluster as kubectl does, or as a pod.
func clusterConfig(path string) (*rest.Config, error) {
	if path == "" && os.Getenv("KUBECONFIG") == "" {
		if c, err := rest.InClusterConfig(); err == nil {
			return c, nil
		}
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = path
	c, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("no cluster: %w; name one by --kubeconfig", err)
	}
	return c, nil
}
