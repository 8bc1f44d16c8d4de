// Command bundle makes the page of Trainyard: it bundles page/main.tsx and page/style.css of the folder above into
// dist. The same sources give the same bytes.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/evanw/esbuild/pkg/api"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bundle:", err)
		os.Exit(1)
	}
}

func run() error {
	root, err := filepath.Abs("..")
	if err != nil {
		return err
	}
	result := api.Build(api.BuildOptions{
		AbsWorkingDir: root,
		EntryPointsAdvanced: []api.EntryPoint{
			{InputPath: "page/main.tsx", OutputPath: "page"},
			{InputPath: "page/style.css", OutputPath: "page"},
		},
		Outdir: "dist", Write: true, Bundle: true, Format: api.FormatIIFE, Target: api.ES2022, Charset: api.CharsetUTF8,
		MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true, LegalComments: api.LegalCommentsNone,
		JSX: api.JSXAutomatic, JSXImportSource: "preact", LogLevel: api.LogLevelWarning,
	})
	if n := len(result.Errors); n > 0 {
		return fmt.Errorf("%d errors in the sources", n)
	}
	return nil
}
