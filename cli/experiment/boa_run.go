package experiment

import (
	"context"
	"fmt"
	"slices"

	"github.com/trainyard/trainyard/internal/parallel"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/simulate"
)

// tasks makes rows and pairs, and returns the simulations that fill them in: all systems and budgets on the same draws.
func (m *boaMix) tasks() (list []parallel.Task) {
	for _, r := range boaRows {
		for _, budget := range m.Budgets {
			m.Rows = append(m.Rows, boaRow{System: r.label, Oracle: r.oracle, Budget: budget,
				seeds: make([]boaSeed, m.Seeds)})
		}
	}
	for i := range m.Rows {
		for seed := range m.Seeds {
			list = append(list, func(ctx context.Context) error { return m.fill(ctx, i, seed) })
		}
	}
	for _, utility := range m.Targets {
		of := func(name string) boaRow { return boaRow{System: name, seeds: make([]boaSeed, m.Seeds)} }
		m.Pairs = append(m.Pairs, boaPair{Utility: utility, Pollux: of(autoscale),
			BOA: []boaRow{of(boaExact), of(boaGlue)}})
	}
	for i := range m.Pairs {
		for seed := range m.Seeds {
			list = append(list, func(ctx context.Context) error { return m.pair(ctx, i, seed) })
		}
	}
	return list
}

// fill runs a row on a seed.
func (m *boaMix) fill(ctx context.Context, row, seed int) (err error) {
	r, of := &m.Rows[row], &boaRows[row/len(m.Budgets)]
	if r.seeds[seed], err = m.on(ctx, of.system, of.information, r.Budget, seed); err != nil {
		return fmt.Errorf("%s at %v GPUs: %w", r.System, r.Budget, err)
	}
	return nil
}

// pair runs pollux-autoscale on a seed, and BOA on what that spent.
func (m *boaMix) pair(ctx context.Context, pair, seed int) (err error) {
	p := &m.Pairs[pair]
	if p.Pollux.seeds[seed], err = m.on(ctx, autoscale, "", p.Utility, seed); err != nil {
		return fmt.Errorf("%s at utility %v: %w", autoscale, p.Utility, err)
	}
	budget := p.Pollux.seeds[seed].paid
	for i := range p.BOA {
		r := &p.BOA[i]
		if r.seeds[seed], err = m.on(ctx, r.System, "estimated", budget, seed); err != nil {
			return fmt.Errorf("%s at %v GPUs: %w", r.System, budget, err)
		}
	}
	return nil
}

// on is simulate on seed+1.
func (m *boaMix) on(ctx context.Context, name, information string, budget float64, seed int) (boaSeed, error) {
	out, paid, err := m.simulate(ctx, name, information, budget, uint64(seed)+1)
	if err != nil {
		return boaSeed{}, err
	}
	return boaSeed{paid, m.SettledJCT(out), out.Unfinished}, nil
}

// sum makes the report of all seeds, once all tasks are done. Pollux on a reservation spends the budget, so the rows of
// BOA on that are its pairs.
func (m *boaMix) sum() {
	for i := range m.Rows {
		m.Rows[i].sum()
	}
	for _, budget := range m.Budgets {
		m.Pairs = append(m.Pairs, boaPair{Pollux: *m.row(pollux+", reserved", budget),
			BOA: []boaRow{*m.row(boaExact, budget), *m.row(boaGlue, budget)}})
	}
	for i := range m.Pairs {
		m.Pairs[i].sum()
	}
}

// row returns the row of a label at a budget.
func (m *boaMix) row(label string, budget float64) *boaRow {
	i := slices.IndexFunc(m.Rows, func(r boaRow) bool { return r.System == label && r.Budget == budget })
	return &m.Rows[i]
}

func (r *boaRow) sum() {
	var spend, jct []float64
	r.Left = 0
	for _, s := range r.seeds {
		spend, jct = append(spend, s.paid), append(jct, s.jct)
		r.Left += s.left
	}
	r.Spend, r.JCT = simulate.Bootstrap(spend), simulate.Bootstrap(jct)
}

func (p *boaPair) sum() {
	p.Pollux.sum()
	for i := range p.BOA {
		p.BOA[i].sum()
		var ratios []float64
		for seed, ours := range p.BOA[i].seeds {
			ratios = append(ratios, p.Pollux.seeds[seed].jct/ours.jct)
		}
		p.Ratios = append(p.Ratios, simulate.Bootstrap(ratios))
	}
}

// simulate runs one system and returns what it spent after the warm-up. The budget of pollux-autoscale is its target of
// utility.
func (m *boaMix) simulate(ctx context.Context, name, information string, budget float64,
	seed uint64) (*simulate.Outcome, float64, error) {
	keys := make(map[string]string)
	if name == pollux || name == autoscale {
		keys["interval"] = fmt.Sprint(polluxRound)
	}
	switch {
	case name == autoscale:
		keys["utility"] = fmt.Sprint(budget)
		budget = slices.Max(m.Budgets)
	case information == "":
		keys["provision"], keys["reserve"] = "reserve", fmt.Sprint(int(budget)/m.PerNode*m.PerNode)
	default:
		keys["information"] = information
	}
	run := m.LongRun
	if information != "perfect" {
		run.Mix = []speedup.Class{} // no system asks for it, and to compute it takes a fifth of a second
	}
	return run.Run(ctx, name, keys, budget, seed)
}
