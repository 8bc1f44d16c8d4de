package controller

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/system/key"
)

// files are the ConfigMaps that settings of the policy name, with the version that was read of each.
type files map[string]string

// errPath says what a setting that names a file holds here.
var errPath = errors.New("want CONFIGMAP/KEY, of a ConfigMap in the controller's namespace")

// errUnanswered says that the API did not answer what is in a file.
var errUnanswered = errors.New("controller: a ConfigMap could not be read")

// known is what the system of a policy knows of GPUs and jobs: scores, and what is in the files that its settings name.
func (c *Controller) known(ctx context.Context, p *v1alpha1.SchedulerPolicySpec,
	scores *variability.Scores) (k system.Knowledge, read files, err error) {
	k.Scores = scores
	err = checkKeys(p)
	if err != nil {
		return k, nil, err
	}
	info, err := system.Named(p.System)
	if err != nil {
		return k, nil, err
	}
	about := key.About{}
	if scores != nil {
		about.Classes = scores.Classes
	}
	var unanswered error
	read = make(files)
	keys := key.Join(info.All(), system.Beliefs)
	k.Files, err = keys.Read(p.Settings, about, func(path string) (io.ReadCloser, error) {
		data, failed := c.file(ctx, path, read)
		if path := (*fs.PathError)(nil); failed != nil && !errors.As(failed, &path) && !apierrors.IsForbidden(failed) {
			unanswered = fmt.Errorf("%w: %w", errUnanswered, failed)
		}
		return data, failed
	})
	if unanswered != nil {
		return k, nil, unanswered
	}
	return k, read, err
}

// file opens CONFIGMAP/KEY and notes the version in read.
func (c *Controller) file(ctx context.Context, path string, read files) (io.ReadCloser, error) {
	name, entry, ok := strings.Cut(path, "/")
	if !ok || name == "" || entry == "" {
		return nil, &fs.PathError{Op: "open", Path: path, Err: errPath}
	}
	var m corev1.ConfigMap
	err := c.o.Reader.Get(ctx, types.NamespacedName{Namespace: c.o.Namespace, Name: name}, &m)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	read[name] = m.ResourceVersion // "": it is not there
	if text, there := m.Data[entry]; there {
		return key.InMemory(text), nil
	}
	if data, there := m.BinaryData[entry]; there {
		return key.InMemory(string(data)), nil
	}
	return nil, &fs.PathError{Op: "open", Path: path, Err: syscall.ENOENT} // in the words of a machine
}

// filesEvery is how often files are looked at again. To watch them would take the right to see all ConfigMaps.
const filesEvery = time.Minute

// watchFiles ends the run once one of the files is another.
func (c *Controller) watchFiles(ctx context.Context, read files, every time.Duration, stop context.CancelCauseFunc) {
	if len(read) == 0 {
		return
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for name, version := range read {
			var m corev1.ConfigMap
			err := c.o.Reader.Get(ctx, types.NamespacedName{Namespace: c.o.Namespace, Name: name}, &m)
			if (err == nil || apierrors.IsNotFound(err)) && m.ResourceVersion != version {
				stop(fmt.Errorf("%w: ConfigMap %s", ErrReload, name))
				return
			}
		}
	}
}
