package device

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
)

// Where the driver of NVIDIA's GPUs lists them, and where the files are by which they are opened.
const (
	nvidiaGPUs  = "/proc/driver/nvidia/gpus"
	deviceNodes = "/dev"
)

// nodeOf returns the file by which a GPU at a PCI address is opened; "" = none is known. The driver names addresses by
// four digits of their domain, its tools by eight.
func nodeOf(gpus, nodes, bus string) string {
	domain, rest, ok := strings.Cut(strings.ToLower(bus), ":")
	if !ok || strings.ContainsAny(bus, "/") {
		return ""
	}
	if len(domain) > 4 {
		domain = strings.TrimLeft(domain[:len(domain)-4], "0") + domain[len(domain)-4:]
	}
	f, err := os.Open(filepath.Join(gpus, domain+":"+rest, "information"))
	if err != nil {
		return ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		minor, found := strings.CutPrefix(lines.Text(), "Device Minor:")
		if !found {
			continue
		}
		path := filepath.Join(nodes, "nvidia"+strings.TrimSpace(minor))
		if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSymlink == 0 && !info.IsDir() {
			return path
		}
	}
	return ""
}
