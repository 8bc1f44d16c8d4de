package realnode

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"runtime"
)

// File is one of an image.
type File struct {
	Path string // absolute
	Data []byte
}

// Image returns an OCI archive of one image, named ImageName, of executable files in one layer. Its entry point is what
// sandboxes run. All files are root's and of no time, so the same files make the same archive.
func Image(entry []string, files ...File) ([]byte, error) {
	var layer bytes.Buffer
	if err := archive(&layer, files); err != nil {
		return nil, err
	}
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{"Entrypoint": entry},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{digest(layer.Bytes())}},
	})
	if err != nil {
		return nil, err
	}
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": descriptor("application/vnd.oci.image.config.v1+json", config),
		"layers": []any{descriptor("application/vnd.oci.image.layer.v1.tar", layer.Bytes())},
	})
	if err != nil {
		return nil, err
	}
	named := descriptor("application/vnd.oci.image.manifest.v1+json", manifest)
	named["annotations"] = map[string]string{"io.containerd.image.name": ImageName}
	index, err := json.Marshal(map[string]any{"schemaVersion": 2, "manifests": []any{named}})
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = archive(&out, []File{
		{"/oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)}, {"/index.json", index},
		blob(manifest), blob(config), blob(layer.Bytes()),
	})
	return out.Bytes(), err
}

func archive(out *bytes.Buffer, files []File) error {
	w := tar.NewWriter(out)
	for _, f := range files {
		h := &tar.Header{Name: f.Path[1:], Mode: 0o755, Size: int64(len(f.Data)), Typeflag: tar.TypeReg}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		if _, err := w.Write(f.Data); err != nil {
			return err
		}
	}
	return w.Close()
}

func descriptor(mediaType string, data []byte) map[string]any {
	return map[string]any{"mediaType": mediaType, "digest": digest(data), "size": len(data)}
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func blob(data []byte) File {
	sum := sha256.Sum256(data)
	return File{path.Join("/blobs/sha256", fmt.Sprintf("%x", sum)), data}
}
