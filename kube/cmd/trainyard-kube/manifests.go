package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"regexp"

	"github.com/trainyard/trainyard/kube/config"
)

const manifestsUsage = `trainyard-kube manifests prints what is to be applied to a cluster first:

  trainyard-kube manifests --image REGISTRY/trainyard-kube | kubectl apply -f -

Flags:
`

// manifests prints what is to be applied to a cluster.
func manifests(args []string, out io.Writer) error {
	f := flag.NewFlagSet("trainyard-kube manifests", flag.ContinueOnError)
	image := f.String("image", config.Image, "`name` of the controller's image")
	crds := f.Bool("crds", false, "the definitions alone, all that --observe needs")
	if err := parse(f, args, manifestsUsage, out); err != nil {
		return err
	}
	switch {
	case f.NArg() > 0:
		return usagef("manifests: unexpected %q, want flags alone", f.Arg(0))
	case !isImage.MatchString(*image):
		return usagef("manifests: --image %q, want a name as registry/trainyard-kube:v1", *image)
	case *crds && *image != config.Image:
		return usagef("manifests: --crds with --image %q, want one of them: definitions run nothing", *image)
	}
	rest := bytes.Replace(config.Install, []byte("image: "+config.Image+"\n"), fmt.Appendf(nil, "image: %q\n", *image),
		1)
	if *crds {
		rest = nil
	}
	_, err := fmt.Fprintf(out, "%s%s", config.CRDs, rest)
	return err
}

var isImage = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._:/@-]*[A-Za-z0-9])?$`)
