package modelname_test

import (
	"testing"

	"github.com/trainyard/trainyard/internal/modelname"
)

func TestSame(t *testing.T) {
	for _, c := range []struct {
		plain, given string
		want         bool
	}{
		{"vgg16", "VGG-16", true}, {"inception3", "Inception_3", true}, {"vgg16", "vgg19", false}, {"vgg16", "vgg1",
			false},
		{"vgg16", "vgg160", false}, {"", "-_", true}, {"a", "", false}, {"é", "é", true},
	} {
		if got := modelname.Same(c.plain, c.given); got != c.want {
			t.Errorf("Same(%q, %q) = %v, want %v", c.plain, c.given, got, c.want)
		}
	}
	if n := testing.AllocsPerRun(10, func() { _ = modelname.Same("vgg16", "VGG-16") }); n > 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
