package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Ensure that the API server takes each file of the examples and each block of YAML of the documentation, whole and
// with no field that it does not know, and that the blocks are those files.
func TestExamplesApply(t *testing.T) {
	api := apiOf(t)
	err := api.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "lab"}})
	must(t, client.IgnoreAlreadyExists(err))
	files, err := filepath.Glob("../examples/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	texts, kinds := make(map[string]bool), make(map[string]bool)
	for _, file := range files {
		b, bad := os.ReadFile(file)
		must(t, bad)
		_, text, _ := strings.Cut(string(b), "\n") // its first line says what it is
		texts[text] = true
		kinds[apply(t, api, file, text)] = true
	}
	if len(kinds) != 4 {
		t.Errorf("examples of %v, want one of each kind", kinds)
	}
	page, err := os.ReadFile("../../docs/guide/kubernetes.md")
	must(t, err)
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(blocks) < 4 {
		t.Errorf("%d blocks of YAML, want more", len(blocks))
	}
	for _, block := range blocks {
		apply(t, api, "docs/guide/kubernetes.md", block[1])
		if !texts[block[1]] {
			t.Errorf("no file of kube/examples holds this block of docs/guide/kubernetes.md:\n%s", block[1])
		}
	}
}

// apply has the API server look at an object, and returns its kind.
func apply(t *testing.T, api client.Client, where, text string) string {
	t.Helper()
	o := parsed(t, text)
	//nolint:staticcheck // Client.Apply takes typed configurations, of which these have none
	err := api.Patch(t.Context(), o, client.Apply, client.DryRunAll, client.FieldOwner("docs"),
		client.FieldValidation(metav1.FieldValidationStrict))
	if err != nil {
		t.Errorf("%s: %v: %s", where, apierrors.ReasonForError(err), err)
	}
	return o.GetKind()
}
