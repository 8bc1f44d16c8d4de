package jobfile

import (
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/internal/strictyaml"
)

// notify reads in which ways the user of a job hears of it: a mapping, or a list of them.
func (r *reader) notify(key string, n ast.Node, dst *[]task.Notify) {
	items := []ast.Node{n}
	if seq, ok := n.(*ast.SequenceNode); ok {
		items = seq.Values
	}
	*dst = nil
	for _, item := range items {
		*dst = append(*dst, r.way(key, item))
	}
	if len(items) > task.MaxNotify {
		r.Fail(n, "%s in %d ways, want at most %d", key, len(items), task.MaxNotify)
	}
}

// way reads one way.
func (r *reader) way(key string, n ast.Node) (w task.Notify) {
	r.Mapping(n, key, []strictyaml.Field{
		strictyaml.Key("on", func(_ string, n ast.Node) { r.occasions(n, &w.On) }),
		strictyaml.Key("desktop", func(_ string, n ast.Node) { r.desktop(n, &w.Desktop) }),
		strictyaml.Key("mail", func(_ string, n ast.Node) { w.Mail = r.argument("notify mail", n, task.CheckArg) }),
		strictyaml.Key("webhook", func(_ string, n ast.Node) {
			r.Mapping(n, "notify webhook", []strictyaml.Field{
				strictyaml.Key("from_file", func(_ string, n ast.Node) {
					r.dir("notify webhook from_file", n, &w.Webhook)
					address := strings.Contains(w.Webhook, "/http:/") || strings.Contains(w.Webhook, "/https:/")
					if r.Err() == nil && address {
						r.Fail(n, "notify webhook of an address, want a file that has it in its first line")
					}
				}),
			})
		}),
		strictyaml.Key("run", func(_ string, n ast.Node) { r.dir("notify run", n, &w.Run) }),
	})
	if err := w.Validate(); r.Err() == nil && err != nil {
		r.Fail(n, "%v", err)
	}
	return w
}

// occasions reads a word, or a list of words.
func (r *reader) occasions(n ast.Node, dst *[]string) {
	items := []ast.Node{n}
	if seq, ok := n.(*ast.SequenceNode); ok {
		items = seq.Values
	}
	for _, item := range items {
		word := ""
		r.word("notify on", item, task.NotifyOn, &word)
		*dst = append(*dst, word)
	}
}

// desktop reads yes; no is as if it were left out.
func (r *reader) desktop(n ast.Node, dst *bool) {
	word, _ := strictyaml.Plain(n)
	if *dst = word == "yes" || word == "true"; !*dst && word != "no" && word != "false" {
		r.Fail(n, "%s, want yes or no", strictyaml.Describe("notify desktop", n))
	}
}
