package term

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Build is what a binary knows of itself.
type Build struct {
	Schema   string `json:"schema"`
	Version  string `json:"version"` // of the module; (devel) when built from a working tree
	Go       string `json:"go"`
	Commit   string `json:"commit"` // "" = unknown
	Time     string `json:"commit_time"`
	Modified bool   `json:"modified"` // the working tree differed from the commit
	Platform string `json:"platform"`
}

// OwnBuild reads the build information of this binary.
func OwnBuild() Build {
	b := Build{Schema: "trainyard.version/v1", Version: "(devel)", Go: runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

func newVersion() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print version, commit and Go version",
		Args:  Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			b := OwnBuild()
			if asJSON {
				return WriteJSON(cmd.OutOrStdout(), b)
			}
			text := fmt.Sprintf("trainyard %s\n", b.Version)
			if b.Commit != "" {
				text += fmt.Sprintf("commit    %s, %s%s\n", b.Commit, b.Time,
					map[bool]string{true: ", modified"}[b.Modified])
			}
			text += fmt.Sprintf("go        %s, %s\n", b.Go, b.Platform)
			return WriteText(cmd.OutOrStdout(), text)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON document")
	return cmd
}
