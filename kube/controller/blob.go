package controller

import (
	"bytes"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// blob is what the API has of one ConfigMap.
type blob struct {
	written bool   // by this leader
	key     string // of the one entry, ...
	data    []byte // ... and what it is, as it wrote it
	version string // resourceVersion; "" = there is none
}

// writeBlob writes a ConfigMap, if it is to hold something else than this leader wrote before.
func (w *fencedWriter) writeBlob(name string, data []byte) error {
	return w.writeEntry(name, blobKey, data)
}

// writeEntry is writeBlob of a ConfigMap that has one entry under a key, and no other.
func (w *fencedWriter) writeEntry(name, key string, data []byte) error {
	mine := w.blobs[name]
	if mine.written && mine.key == key && bytes.Equal(mine.data, data) {
		return nil
	}
	for try := 0; ; try++ {
		version, err := w.tryBlob(name, key, data, mine.version)
		switch {
		case err == nil:
			w.blobs[name] = blob{true, key, bytes.Clone(data), version}
			return nil
		case apierrors.IsNotFound(err) && mine.version != "": // else there is no such namespace
			mine.version = ""
		case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err):
			if mine.version, err = w.blobVersion(name); err != nil {
				return err
			}
		default:
			if final := w.pause(try, err); final != nil {
				return fmt.Errorf("controller: config map %s: %w", name, final)
			}
		}
	}
}

// tryBlob writes a ConfigMap over the one of a version, which is "" where there is none, and returns the version that
// it has then.
func (w *fencedWriter) tryBlob(name, key string, data []byte, version string) (string, error) {
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.space, Name: name, ResourceVersion: version},
		BinaryData: map[string][]byte{key: data}}
	err := w.call(func(ctx context.Context) error {
		if version == "" {
			return w.api.Create(ctx, m)
		}
		return w.api.Update(ctx, m)
	})
	return m.ResourceVersion, err
}

// blobVersion returns the version of a ConfigMap that someone else has written, if that was no leader after this one:
// the version is read first, so that what a leader writes who comes after the look is not written over.
func (w *fencedWriter) blobVersion(name string) (string, error) {
	for try := 0; ; try++ {
		var m corev1.ConfigMap
		err := client.IgnoreNotFound(w.reader.Get(w.ctx, types.NamespacedName{Namespace: w.space, Name: name}, &m))
		if err == nil {
			_, err = w.ours()
			return m.ResourceVersion, err
		}
		if final := w.pause(try, err); final != nil {
			return "", fmt.Errorf("controller: config map %s: %w", name, final)
		}
	}
}
