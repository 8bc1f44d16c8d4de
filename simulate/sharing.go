package simulate

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/internal/suggest"
	"github.com/trainyard/trainyard/model/interference"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/trace"
)

// Sharing is what was measured of jobs that share GPUs: the truth of the simulated world, and what systems may learn.
type Sharing struct {
	Name   string // of the file
	Sets   []interference.Set
	Models map[string]SoloUse  // those that are known
	Pairs  []interference.Pair // throughputs, of Gavel's table
}

// SoloUse is what a model makes of its GPUs alone.
type SoloUse struct{ Use, Memory float64 } // mean use, peak of memory, 0..1; 0 = unknown

// Untyped is the type of GPU for which a table is read where the cluster names none: both tables have it.
const Untyped = "v100"

// What EaCO's page leaves open of jobs: all of its models take 90 epochs, and only shares of memory are given.
const (
	TableEpochs = 90
	tableGPUGB  = 32
)

// ReadSharing reads the tables of the EaCO paper, or Gavel's table of throughputs, which starts with a brace. Errors
// call the file by name.
func ReadSharing(r io.Reader, name string) (*Sharing, error) {
	in := bufio.NewReader(r)
	s := &Sharing{Name: name, Models: make(map[string]SoloUse)}
	if head, _ := in.Peek(1); len(head) == 1 && head[0] == '{' {
		pairs, err := interference.ReadGavel(in, name)
		if err != nil {
			return nil, err
		}
		s.Pairs, s.Sets = pairs, interference.GavelSets(pairs)
		for i := range pairs {
			s.Models[pairs[i].Models[0]] = SoloUse{}
		}
		return s, nil
	}
	rows, err := interference.ReadEaCO(in, name)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		if len(row.Jobs) == 1 {
			s.Models[row.Jobs[0]] = SoloUse{row.Use, row.MaxMemory}
		}
	}
	s.Sets, err = interference.EaCOSets(rows)
	return s, err
}

// Steps returns how long steps take on one type of GPU, for traces that count them; nil where the table does not say.
func (s *Sharing) Steps(c *cluster.Cluster) (*trace.StepTimes, error) {
	if s == nil || len(s.Pairs) == 0 {
		return nil, nil
	}
	typ := typeOf(c)
	var b bytes.Buffer
	b.WriteString("model,batch_size,num_gpus,step_s\n")
	seen := make(map[string]bool)
	for i := range s.Pairs {
		p := &s.Pairs[i]
		key := fmt.Sprint(p.Models[0], "/", p.Width)
		if p.Type != typ || seen[key] || !(p.Alone[0] > 0) {
			continue
		}
		seen[key] = true
		model, batch, _ := strings.Cut(strings.TrimSuffix(p.Models[0], ")"), " (batch size ")
		fmt.Fprintf(&b, "%s,%s,%d,%s\n", model, batch, p.Width, strconv.FormatFloat(1/p.Alone[0], 'f', 9, 64))
	}
	return trace.ReadSteps(&b, s.Name)
}

// typeOf returns the type of GPU of a cluster as tables call it.
func typeOf(c *cluster.Cluster) string {
	if len(c.Types) != 1 || c.Types[0] == "gpu" {
		return Untyped
	}
	return c.Types[0]
}

// kindOf returns the name that s has for the model of a job: the model, or with its batch size.
func (s *Sharing) kindOf(j *trace.Job) (string, error) {
	if _, ok := s.Models[j.Spec.Model]; ok {
		return j.Spec.Model, nil
	}
	sized := fmt.Sprintf("%s (batch size %d)", j.Spec.Model, j.Spec.Batch.Max)
	if _, ok := s.Models[sized]; ok {
		return sized, nil
	}
	var names []string
	for m := range s.Models {
		names = append(names, m)
	}
	slices.Sort(names)
	return "", fmt.Errorf("interference: %s: job %s: model %q is not known there%s, want one of %s", s.Name,
		j.Spec.Name, j.Spec.Model,
		suggest.Hint(j.Spec.Model, names), strings.Join(names, ", "))
}

// describe fills in a job, which is the caller's own, what s knows of its model; it consents to share. memGB is that of
// a GPU.
func (s *Sharing) describe(j *trace.Job, memGB float32) error {
	name, err := s.kindOf(j)
	if err != nil {
		return err
	}
	use := s.Models[name]
	j.Spec.Model, j.Spec.Share = name, sched.ShareAllow
	if use.Use == 0 {
		return nil
	}
	if j.Spec.Epochs == 0 {
		j.Spec.Epochs = TableEpochs
	}
	j.Spec.Util, j.Spec.GPUMemGB = float32(use.Use), float32(use.Memory)*memGB
	return nil
}

// on returns the cluster with the memory of GPUs where it is not known, and how much that is.
func (s *Sharing) on(c *cluster.Cluster) (*cluster.Cluster, float32) {
	with, memGB := *c, float32(tableGPUGB)
	with.Nodes = slices.Clone(c.Nodes)
	for i := range with.Nodes {
		if n := &with.Nodes[i]; n.GPUMemGB > 0 {
			memGB = n.GPUMemGB
		}
	}
	for i := range with.Nodes {
		if n := &with.Nodes[i]; n.GPUMemGB == 0 {
			n.GPUMemGB = memGB
		}
	}
	return &with, memGB
}

// sets returns the sets of the cluster's type of GPU, under the name that it has there.
func (s *Sharing) sets(c *cluster.Cluster) ([]interference.Set, error) {
	typ, name := typeOf(c), c.Types[0]
	var list []interference.Set
	for _, x := range s.Sets {
		if x.Place.GPU == typ {
			x.Place.GPU = name
			list = append(list, x)
		}
	}
	if len(list) == 0 || len(c.Types) > 1 {
		return nil, fmt.Errorf("interference: %s: nothing of GPUs of types %s, want a cluster of one type that is "+
			"there, such as %s",
			s.Name, strings.Join(c.Types, ", "), s.Sets[0].Place.GPU)
	}
	return list, nil
}

// placeOf returns the one kind of GPU that a cluster has, and the mechanism by which they are shared.
func placeOf(c *cluster.Cluster) (interference.Place, error) {
	all := slices.Clone(c.Nodes)
	for i := range c.Pools {
		all = append(all, c.Pools[i].Node)
	}
	for i := range all {
		if a, b := all[0].Sharing, all[i].Sharing; a != b {
			return interference.Place{}, fmt.Errorf("interference: nodes that share by %v and by %v, want a cluster "+
				"of one mechanism", a, b)
		}
	}
	return interference.Place{GPU: c.Types[0], How: all[0].Sharing}, nil
}

// interfere has jobs that share GPUs slow each other down as the sets say: by the estimate of a History that knows them
// all, times a lognormal factor of each job in each company. The tables are of time-slicing: of GPUs shared by another
// mechanism they say nothing.
func interfere(sets []interference.Set, c *cluster.Cluster, noise float64, seed uint64, r *sim.Runtime) error {
	place, err := placeOf(c)
	if err != nil {
		return err
	}
	h := &interference.History{}
	err = h.Seed(sets)
	if err != nil {
		return err
	}
	var members []interference.Member
	var found []interference.Estimate
	known := make(map[string]float64)
	r.Interference = func(j *trace.Job, others []*trace.Job) float64 {
		key := fmt.Sprint(j.Spec.GPUs.Want, "/", j.Spec.Model)
		members = append(members[:0], interference.Member{Model: j.Spec.Model, Use: float64(j.Spec.Util)})
		for _, o := range others {
			members = append(members, interference.Member{Model: o.Spec.Model, Use: float64(o.Spec.Util)})
			key += "+" + o.Spec.Model
		}
		slow, ok := known[key]
		if !ok {
			var err error
			place.Width = j.Spec.GPUs.Want
			if found, err = h.Slowdowns(place, members, found[:0]); err != nil {
				return interference.Generic(len(members))
			}
			slow = found[0].Slow
			known[key] = slow
		}
		if noise > 0 {
			draw := rand.New(rand.NewPCG(seed, companyOf(j, others)))
			slow *= math.Exp(noise * draw.NormFloat64())
		}
		return slow
	}
	return nil
}

// companyOf numbers a job in its company.
func companyOf(j *trace.Job, others []*trace.Job) uint64 {
	const prime = 1099511628211 // FNV-1a
	x := uint64(14695981039346656037)
	add := func(s string) {
		for i := range len(s) {
			x = (x ^ uint64(s[i])) * prime
		}
		x *= prime
	}
	add(j.Spec.Name)
	for _, o := range others {
		add(o.Spec.Name)
	}
	return x
}
