package server

import (
	"fmt"
	"math"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/trainyard/trainyard/api"
)

// describe starts the description of the routes. What each takes and answers is added with the route itself.
func describe(version string) *huma.OpenAPI {
	const prefix = "#/components/schemas/"
	return &huma.OpenAPI{OpenAPI: "3.1.0",
		Info: &huma.Info{Title: "Trainyard", Version: version,
			Description: "Jobs on GPUs. Over the unix socket of a machine the kernel says who asks; " +
				"over the network a bearer token or a client certificate does."},
		Components: &huma.Components{Schemas: huma.NewMapRegistry(prefix, huma.DefaultSchemaNamer),
			SecuritySchemes: map[string]*huma.SecurityScheme{"bearer": {Type: "http", Scheme: "bearer"},
				"certificate": {Type: "mutualTLS"}}},
		Security: []map[string][]string{{"bearer": {}}, {"certificate": {}}},
	}
}

// operation describes a route of the table of rules, and notes its id.
func (s *Server) operation(method, path, id, summary string) huma.Operation {
	pattern := method + " " + path
	ru := rules[pattern]
	s.guard.ids[pattern] = id
	who := fmt.Sprintf("Least role: %v", ru.least)
	if ru.own {
		who += ", of the job's own user"
	}
	op := huma.Operation{Method: method, Path: path, OperationID: id, Summary: summary, Description: who + ".",
		MaxBodyBytes:    ru.body + 1,
		BodyReadTimeout: api.Patience, Errors: []int{http.StatusBadRequest, http.StatusUnauthorized,
			http.StatusForbidden}}
	if strings.Contains(path, "{") {
		op.Errors = append(op.Errors, http.StatusNotFound)
	}
	return op
}

// boundIntegers gives each integer of a query or path that has no bound one that an int32 holds: what is behind
// takes no more.
func boundIntegers(docs huma.API) {
	for _, path := range docs.OpenAPI().Paths {
		for _, op := range []*huma.Operation{path.Get, path.Post} {
			if op == nil {
				continue
			}
			for _, p := range op.Parameters {
				if p.Schema.Type == huma.TypeInteger {
					boundOne(p.Schema)
				}
			}
		}
	}
}

func boundOne(x *huma.Schema) {
	least, most := 0.0, float64(math.MaxInt32)
	if x.Minimum == nil {
		x.Minimum = &least
	}
	if x.Maximum == nil {
		x.Maximum = &most
	}
	x.PrecomputeMessages()
}

// ofMachine are the fields, by document, that only one machine has: there they are always given, or wanted.
var ofMachine = map[string][]string{"Info": {"state", "pid"}, "Submission": {"dir"}}

// require notes in the description of a machine that it has what a cluster has not.
func (s *Server) require() {
	if s.o.Site.Kind() != api.Machine {
		return
	}
	documents := s.docs.OpenAPI().Components.Schemas.Map()
	for name, fields := range ofMachine {
		documents[name].Required = append(documents[name].Required, fields...)
		documents[name].PrecomputeMessages()
	}
}
