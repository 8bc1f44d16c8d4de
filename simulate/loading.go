package simulate

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/trainyard/trainyard/internal/inputfile"
	"github.com/trainyard/trainyard/model/power"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/system/key"
	"github.com/trainyard/trainyard/trace"
)

// Inputs are the files that a Request is about; "" is none.
type Inputs struct {
	Trace   string
	Format  string        // of the trace; "": its header says it
	Unit    time.Duration // of times in a trace that does not say it; 0: the format's own
	Cluster string        // its file, or a shorthand such as 15x4
	Seed    *uint64       // of node failures and of noise in reports; nil: that of the cluster
	Scores  string        // PM scores of the GPUs, as they are
	Known   string        // PM scores of the GPUs, as the system knows them
	Apps    string        // profiles of applications
	Sharing string        // how jobs that share GPUs slow each other down
	Caps    string        // what GPUs do under power caps
	Price   string        // of a kWh over time
	Carbon  string        // of a kWh over time
}

// Load reads the files of From, and those that Settings name, into the fields that are not set. Nothing is read where
// From is zero. Requests that share files are copies of one that is loaded: Load reads nothing twice.
func (s *Request) Load() error {
	if s.From == (Inputs{}) {
		return nil
	}
	for _, step := range []struct {
		field string
		load  func() error
	}{
		{"Cluster", s.loadCluster},
		{"Sharing", func() error { return once(&s.Sharing, "interference", s.From.Sharing, ReadSharing) }},
		{"Trace", s.loadTrace},
		{"Caps", s.loadCaps},
		{"Energy", func() error { return once(&s.Energy.Price, "energy price", s.From.Price, power.ReadPrices) }},
		{"Energy", func() error { return once(&s.Energy.Carbon, "carbon", s.From.Carbon, power.ReadCarbon) }},
		{"Scores", s.loadScores},
		{"Known", s.loadKnown},
		{"Apps", s.loadApps},
		{"Settings", s.loadFiles},
	} {
		if err := step.load(); err != nil {
			return wrong(step.field, err)
		}
	}
	return nil
}

// once reads the file at a path into a field that is not set.
func once[T any](field **T, what, path string, read func(io.Reader, string) (*T, error)) (err error) {
	if *field == nil {
		*field, err = inputfile.Read(what, path, read)
	}
	return err
}

func (s *Request) loadCluster() (err error) {
	if s.Cluster != nil || s.From.Cluster == "" {
		return nil
	}
	if s.Cluster, err = ReadCluster(s.From.Cluster); err != nil {
		return err
	}
	if s.From.Seed != nil {
		s.Cluster.Failures.Seed = *s.From.Seed
	}
	s.NoiseSeed = s.Cluster.Failures.Seed
	return nil
}

// loadTrace reads the trace; one that counts steps needs to know how long they take.
func (s *Request) loadTrace() error {
	if s.Trace != nil || s.From.Trace == "" {
		return nil
	}
	steps, err := s.Sharing.Steps(s.Cluster)
	if err != nil {
		return wrong("Sharing", inputfile.WrongFile(err))
	}
	s.Trace, err = ReadTrace(s.From.Trace, trace.Options{Format: s.From.Format, Unit: s.From.Unit, Steps: steps})
	return err
}

func (s *Request) loadCaps() (err error) {
	if s.Caps == nil {
		s.Caps, err = inputfile.Read("power caps", s.From.Caps, ReadCaps)
	}
	return err
}

func (s *Request) loadScores() (err error) {
	if s.Scores == nil {
		s.Scores, err = ReadScores("variability", s.From.Scores, s.Cluster.MostGPUs())
	}
	return err
}

func (s *Request) loadKnown() (err error) {
	if s.Known == nil {
		s.Known, err = ReadScores("variability-known", s.From.Known, s.Cluster.MostGPUs())
	}
	if err == nil {
		err = inputfile.WrongFile(s.Scores.SameOrder(s.Known))
	}
	return err
}

func (s *Request) loadApps() (err error) {
	if s.Apps == nil {
		s.Apps, err = ReadApps(s.From.Apps)
	}
	return err
}

// loadFiles reads the files that the settings of the system name.
func (s *Request) loadFiles() error {
	if s.Files != nil || s.System == "" {
		return nil
	}
	info, err := system.Named(s.System)
	if err != nil {
		return wrong("System", err)
	}
	about := key.About{GPUs: s.Cluster.MostGPUs()}
	if s.Scores != nil {
		about.Classes = s.Scores.Classes
	}
	s.Files, err = KeysOf(info, s.Preset).Read(s.Settings, about, open)
	return err
}

// open opens a file that a key names.
func open(path string) (io.ReadCloser, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s %w", path, key.ErrFolder)
	}
	return os.Open(path)
}
