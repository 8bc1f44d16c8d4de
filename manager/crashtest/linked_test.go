package crashtest

import (
	"debug/elf"
	"strings"
	"testing"
)

// Ensure that the program links no template engine: it finds methods by name, so that the linker would keep every
// method of every type, a tenth of the program.
func TestLinksNoTemplates(t *testing.T) {
	t.Parallel()
	f, err := elf.Open(trainyard)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	own := false
	for _, s := range symbols {
		own = own || strings.HasPrefix(s.Name, "github.com/trainyard/trainyard/")
		if strings.HasPrefix(s.Name, "text/template.(*Template).Execute") {
			t.Errorf("the program has %s; a template of cobra needs it, see cli/term/usage.go", s.Name)
		}
	}
	if !own {
		t.Error("no symbol of the program is known")
	}
}
