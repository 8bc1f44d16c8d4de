// Package modelname compares names of models, which are written in many ways: ResNet-50, resnet50, resnet_50. It knows
// no model.
package modelname

// Same reports whether given is plain, which is lower case without '-' and '_', once case and these are dropped. It
// allocates nothing.
func Same(plain, given string) bool {
	n := 0
	for i := range len(given) {
		c := given[i]
		switch {
		case c == '-' || c == '_':
			continue
		case 'A' <= c && c <= 'Z':
			c += 'a' - 'A'
		}
		if n == len(plain) || plain[n] != c {
			return false
		}
		n++
	}
	return n == len(plain)
}
