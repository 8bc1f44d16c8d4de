package simulate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/cli/inputs"
	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/simulate"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/system/key"
)

func newSystems() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:               "systems [NAME]",
		Short:             "List the scheduling systems, or say all about one",
		Args:              term.Exactly("[NAME]"),
		ValidArgsFunction: term.FirstArg(inputs.SystemNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			infos := system.Table()
			if len(args) == 1 {
				info, err := system.Named(args[0])
				if err != nil {
					return term.Usage(err)
				}
				infos = []system.Info{*info}
			}
			out := cmd.OutOrStdout()
			switch {
			case asJSON:
				return term.WriteJSON(out, systemsDocOf(infos))
			case len(args) == 1:
				return term.WriteText(out, systemText(&infos[0], term.WidthOf(out)))
			}
			return term.WriteText(out, systemList(infos, term.WidthOf(out)))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON document")
	return cmd
}

// systemList has one entry per system, one line long where the width allows.
func systemList(infos []system.Info, width int) string {
	var b strings.Builder
	longest := 0
	for i := range infos {
		longest = max(longest, len(infos[i].Name))
	}
	for i := range infos {
		fmt.Fprintf(&b, "%-*s  %s\n", longest, infos[i].Name, term.Wrap(infos[i].Line, width, longest+2))
	}
	b.WriteString("\nPresets (--preset) reproduce published set-ups:\n")
	for i := range simulate.Presets {
		p := &simulate.Presets[i]
		fmt.Fprintf(&b, "%-*s  %s\n", longest, p.Name, term.Wrap(p.Line, width, longest+2))
	}
	b.WriteString("\n`trainyard systems NAME` says what a system assumes and which keys it takes.\n")
	return b.String()
}

// systemText says all about one system.
func systemText(info *system.Info, width int) string {
	var b strings.Builder
	line := func(what, text string) { b.WriteString(term.Entry(what, text, width)) }
	line("name", info.Name)
	line("does", info.Line)
	line("assumes", info.Assumes)
	line("source", info.Source)
	if presets := presetsOf(info.Name); len(presets) > 0 {
		line("presets", strings.Join(presets, ", "))
	}
	own, common := slices.Clone(info.Keys), info.CommonKeys()
	own = slices.DeleteFunc(own, func(k key.Key) bool { // it says what a common one means here
		of := system.Common.Find(k.Name)
		if of != nil {
			common = append(common, k)
		}
		return of != nil
	})
	writeKeys(&b, "keys of its own", own, width)
	writeKeys(&b, "keys of every system", common, width)
	writeKeys(&b, "keys of what provides nodes", info.ProvisioningKeys(), width)
	writeKeys(&b, "keys of the simulated cluster", simulate.RuntimeKeys, width)
	return b.String()
}

// writeKeys lists keys with their defaults.
func writeKeys(b *strings.Builder, title string, keys []key.Key, width int) {
	if len(keys) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s (--set %s)\n", title, "NAME.KEY=VALUE")
	longest := 0
	for _, k := range keys {
		longest = max(longest, len(k.Name)+1+len(k.Default))
	}
	for _, k := range keys {
		fmt.Fprintf(b, "  %-*s  %s\n", longest, k.Name+"="+k.Default, term.Wrap(k.Doc, width, longest+4))
	}
}

// presetsOf returns the presets that have the system.
func presetsOf(name string) []string {
	presets := []string{}
	for i := range simulate.Presets {
		if p := &simulate.Presets[i]; slices.Contains(p.Systems(), name) {
			presets = append(presets, p.Name)
		}
	}
	return presets
}

// systemsDoc is the document of systems --json. Names are only ever added.
type systemsDoc struct {
	Schema  string      `json:"schema"`
	Systems []systemDoc `json:"systems"`
}

type systemDoc struct {
	Name    string   `json:"name"`
	Line    string   `json:"line"`
	Assumes string   `json:"assumes"`
	Source  string   `json:"source"`
	Presets []string `json:"presets"`
	Keys    []keyDoc `json:"keys"`
}

type keyDoc struct {
	Name    string `json:"name"`
	Default string `json:"default"`
	Doc     string `json:"doc"`
	Scope   string `json:"scope"` // system, common, provision or simulation

	Live    string   `json:"live_default,omitempty"`   // for real jobs, where it is another
	Scored  string   `json:"scored_default,omitempty"` // where PM scores of the GPUs are known
	Places  []string `json:"places"`                   // where it may be given: simulation, machine, cluster
	Choices []string `json:"choices,omitempty"`        // words that it takes
	File    string   `json:"file,omitempty"`           // what the files are that it names
}

func systemsDocOf(infos []system.Info) systemsDoc {
	doc := systemsDoc{Schema: "trainyard.systems/v1"}
	for i := range infos {
		s := &infos[i]
		one := systemDoc{Name: s.Name, Line: s.Line, Assumes: s.Assumes, Source: s.Source, Presets: presetsOf(s.Name)}
		one.addKeys("system", s.Keys)
		one.addKeys("common", s.CommonKeys())
		one.addKeys("provision", s.ProvisioningKeys())
		one.addKeys("simulation", simulate.RuntimeKeys)
		doc.Systems = append(doc.Systems, one)
	}
	return doc
}

func (d *systemDoc) addKeys(scope string, keys []key.Key) {
	for _, k := range keys {
		doc := keyDoc{Name: k.Name, Default: k.Default, Doc: k.Doc, Scope: scope, Live: k.Live, Scored: k.Scored,
			Places:  k.Places(),
			Choices: k.Choices}
		if k.Files != nil {
			doc.File = k.Files.Want
		}
		d.Keys = append(d.Keys, doc)
	}
}
