package skew

import (
	"math"
	"testing"
)

// Ensure that any limit in 0.14..0.61 separates the models said to need consolidation from those that do not.
//
// Reference: Gu et al., NSDI'19, section 3 (which models suffer); skews derived from the released simulator's lists.
func TestPublishedModelsSeparate(t *testing.T) {
	want := map[string]struct {
		skew   float64
		skewed bool
	}{
		"vgg19": {0.717, true}, "vgg16": {0.744, true}, "vgg11": {0.774, true}, "alexnet": {0.611, true},
		"resnet152": {0.060, false}, "resnet101": {0.075, false}, "resnet50": {0.112, false},
		"inception4": {0.044, false}, "inception3": {0.138, false},
	}
	models := Models()
	if len(models) != len(want) {
		t.Fatalf("%d models, want %d", len(models), len(want))
	}
	for _, m := range models {
		w := want[m.Name]
		if math.Abs(m.Skew()-w.skew) > 5e-4 {
			t.Errorf("%s: skew %.4f, want %.3f", m.Name, m.Skew(), w.skew)
		}
		for _, limit := range []float64{0.14, PackLimit, 0.61} {
			if (m.Skew() > limit) != w.skewed {
				t.Errorf("%s: skew %.3f with limit %v is on the wrong side", m.Name, m.Skew(), limit)
			}
		}
	}
}

func TestOf(t *testing.T) {
	for _, tt := range []struct {
		name, as string // as: the published name, "" = unknown
	}{
		{"vgg16", "vgg16"}, {"VGG-16", "vgg16"}, {"Vgg_16", "vgg16"}, {"-V-g-G-1-6-", "vgg16"},
		{"AlexNet", "alexnet"}, {"ResNet-50", "resnet50"}, {"Inception-v3", "inception3"},
		{"INCEPTION_V4", "inception4"},
		{"inception3", "inception3"},
		{"", ""}, {"-", ""}, {"vgg", ""}, {"vgg161", ""}, {"vgg16 ", ""}, {"googlenet", ""}, {"bert", ""},
		{"vggé16", ""},
	} {
		got, known := Of(tt.name)
		want := 0.0
		for _, m := range Models() {
			if m.Name == tt.as {
				want = m.LargestMB / m.TotalMB
			}
		}
		if got != want || known != (tt.as != "") {
			t.Errorf("Of(%q) = %v, %v, want %v, %v", tt.name, got, known, want, tt.as != "")
		}
	}
	if n := testing.AllocsPerRun(10, func() { Of("Inception-v3") }); n != 0 {
		t.Errorf("Of allocates %v times", n)
	}
}

// Ensure that the published numbers, and the imbalance of parameter servers computed from the published lists, agree
// with the shapes of the layers as their designers gave them. The lists are rounded to 0.1 MB.
func TestArchitecturesAgree(t *testing.T) {
	imbalance := map[string][4]float64{ // on 2, 4, 8 and 16 servers, derived from the released simulator's lists
		"vgg19":     {1.62, 2.97, 5.80, 11.46},
		"vgg16":     {1.64, 3.06, 5.99, 11.91},
		"vgg11":     {1.67, 3.13, 6.19, 12.38},
		"alexnet":   {1.41, 2.46, 4.89, 9.77},
		"resnet152": {1.11, 1.11, 1.40, 1.45},
		"resnet101": {1.15, 1.16, 1.58, 1.78},
		"resnet50":  {1.21, 1.26, 1.90, 2.00},
	}
	built := architectures()
	for _, m := range Models() {
		p, ok := built[m.Name]
		if !ok {
			continue // Inception: too many shapes to repeat here
		}
		largest, total := 0.0, 0.0
		for _, s := range p.Tensors {
			largest, total = max(largest, s), total+s
		}
		if len(p.Tensors) != m.Tensors || math.Abs(largest-m.LargestMB) > 0.05 ||
			math.Abs(total-m.TotalMB) > 0.05*float64(m.Tensors) {
			t.Errorf("%s: %d tensors, %.2f MB, largest %.2f MB; published %+v", m.Name, len(p.Tensors), total, largest,
				m)
		}
		if math.Abs(p.Skew()-m.Skew()) > 1.5e-3 {
			t.Errorf("%s: skew %.4f, published %.4f", m.Name, p.Skew(), m.Skew())
		}
		for i, k := range []int{2, 4, 8, 16} {
			if got := PSImbalance(p.Tensors, k); math.Abs(got-imbalance[m.Name][i]) > 0.02*imbalance[m.Name][i] {
				t.Errorf("%s: imbalance %.3f on %d servers, published lists give %.2f", m.Name, got, k,
					imbalance[m.Name][i])
			}
		}
	}
}

// architectures returns the tensors above 1 MB of models whose layers are quickly written down.
//
// Source: Simonyan and Zisserman, ICLR'15, table 1 (VGG); Krizhevsky, "One weird trick", 2014 (AlexNet in one tower);
// He et al., CVPR'16, table 1 (ResNet).
func architectures() map[string]Profile {
	return map[string]Profile{
		"vgg11":     vgg(1, 1, 2, 2, 2),
		"vgg16":     vgg(2, 2, 3, 3, 3),
		"vgg19":     vgg(2, 2, 4, 4, 4),
		"alexnet":   alexnet(),
		"resnet50":  resnet(3, 4, 6, 3),
		"resnet101": resnet(3, 4, 23, 3),
		"resnet152": resnet(3, 8, 36, 3),
	}
}

// layers collects tensors of 4-byte weights.
type layers struct{ tensors []float64 }

// conv adds the weights of a convolution of size x size, and a full connection with size 1.
func (l *layers) conv(size, in, out int) int {
	if mb := float64(4*size*size*in*out) / MB; mb > 1 {
		l.tensors = append(l.tensors, mb)
	}
	return out
}

func vgg(repeats ...int) Profile {
	var l layers
	c := 3
	for stage, n := range repeats {
		for range n {
			c = l.conv(3, c, min(64<<stage, 512))
		}
	}
	l.conv(1, 7*7*512, 4096)
	l.conv(1, 4096, 4096)
	l.conv(1, 4096, 1000)
	return Profile{l.tensors}
}

func alexnet() Profile {
	var l layers
	l.conv(11, 3, 64)
	l.conv(5, 64, 192)
	l.conv(3, 192, 384)
	l.conv(3, 384, 384)
	l.conv(3, 384, 256)
	l.conv(1, 6*6*256, 4096)
	l.conv(1, 4096, 4096)
	l.conv(1, 4096, 1000)
	return Profile{l.tensors}
}

func resnet(repeats ...int) Profile {
	var l layers
	c := l.conv(7, 3, 64)
	for stage, n := range repeats {
		width := 64 << stage
		for block := range n {
			if block == 0 {
				l.conv(1, c, 4*width) // projection shortcut
			}
			l.conv(1, c, width)
			l.conv(3, width, width)
			c = l.conv(1, width, 4*width)
		}
	}
	l.conv(1, c, 1000)
	return Profile{l.tensors}
}

// Models returns the models with a published tensor list, by family, largest first.
func Models() []Model { return append([]Model(nil), published[:]...) }
