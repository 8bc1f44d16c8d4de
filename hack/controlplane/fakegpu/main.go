// Command fakegpu is a DRA plugin of the kubelet for GPUs that are not there. It publishes them as NVIDIA's driver
// does: driver gpu.nvidia.com, one pool per node, devices gpu-0 and up, with uuid, productName and memory. What a
// container gets of a GPU is one variable in its environment, by CDI: GPU_DEVICE_3=GPU-node-3.
//
// A GPU that one claim has is refused to another: that the API server accepts both is no reason to believe it.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
)

// driverName is NVIDIA's; cdiKind is what CDI calls the devices.
const (
	driverName = "gpu.nvidia.com"
	cdiKind    = "k8s.gpu.nvidia.com/claim"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "fakegpu:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	node := flag.String("node", "", "`name` of the node")
	gpus := flag.Int("gpus", 8, "`number` of its GPUs")
	product := flag.String("product", "NVIDIA H100 80GB HBM3", "`model` of its GPUs")
	root := flag.String("root", "/var/lib/kubelet", "`folder` of the kubelet")
	cdi := flag.String("cdi", "/var/run/cdi", "`folder` of CDI's specifications")
	kubeconfig := flag.String("kubeconfig", "", "`file` that says where the cluster is")
	flag.Parse()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	data, registry := filepath.Join(*root, "plugins", driverName), filepath.Join(*root, "plugins_registry")
	for _, folder := range []string{data, registry} { // the kubelet may not be up yet
		if err := os.MkdirAll(folder, 0o750); err != nil {
			return err
		}
	}
	helper, err := kubeletplugin.Start(ctx, &plugin{*node, *cdi}, kubeletplugin.KubeClient(client),
		kubeletplugin.NodeName(*node),
		kubeletplugin.DriverName(driverName), kubeletplugin.PluginDataDirectoryPath(data),
		kubeletplugin.RegistrarDirectoryPath(registry))
	if err != nil {
		return err
	}
	defer helper.Stop()
	pool := resourceslice.Pool{Slices: []resourceslice.Slice{{Devices: devices(*node, *product, *gpus)}}}
	if err := helper.PublishResources(ctx,
		resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{*node: pool}}); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

func devices(node, product string, n int) (list []resourcev1.Device) {
	text := func(s string) resourcev1.DeviceAttribute { return resourcev1.DeviceAttribute{StringValue: &s} }
	for i := range n {
		name := "gpu-" + strconv.Itoa(i)
		list = append(list, resourcev1.Device{
			Name: name,
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"type": text("gpu"),
				"uuid": text(uuid(node, name)), "productName": text(product)},
			Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{
				"memory": {Value: resource.MustParse("80Gi")}},
		})
	}
	return list
}

// uuid is that of the GPU with a name: GPU-node-3 for gpu-3.
func uuid(node, device string) string { return "GPU-" + node + strings.TrimPrefix(device, "gpu") }

// plugin keeps what is prepared as CDI's specifications, one file for each claim: it may be killed at any time.
type plugin struct{ node, cdi string }

// spec is one of CDI's files.
type spec struct {
	Version string   `json:"cdiVersion"`
	Kind    string   `json:"kind"`
	Devices []device `json:"devices"`
}

type device struct {
	Name  string `json:"name"` // the claim's UID and the name of the GPU, with a dash between
	Edits struct {
		Env []string `json:"env"`
	} `json:"containerEdits"`
}

// PrepareResourceClaims writes a CDI file for each claim.
func (p *plugin) PrepareResourceClaims(_ context.Context,
	claims []*resourcev1.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	results := make(map[types.UID]kubeletplugin.PrepareResult)
	for _, c := range claims {
		given, err := p.prepare(c)
		results[c.UID] = kubeletplugin.PrepareResult{Devices: given, Err: err}
	}
	return results, nil
}

func (p *plugin) prepare(c *resourcev1.ResourceClaim) (given []kubeletplugin.Device, err error) {
	taken, err := p.taken(c.UID)
	if err != nil {
		return nil, err
	}
	s := spec{Version: "0.6.0", Kind: cdiKind}
	for _, r := range c.Status.Allocation.Devices.Results {
		if r.Driver != driverName {
			continue
		}
		if other := taken[r.Device]; other != "" {
			return nil, fmt.Errorf("%s belongs to claim %s", r.Device, other)
		}
		d := device{Name: string(c.UID) + "-" + r.Device}
		d.Edits.Env = []string{"GPU_DEVICE_" + strings.TrimPrefix(r.Device, "gpu-") + "=" + uuid(p.node, r.Device)}
		s.Devices = append(s.Devices, d)
		given = append(given, kubeletplugin.Device{Requests: []string{r.Request}, PoolName: r.Pool,
			DeviceName:   r.Device,
			CDIDeviceIDs: []string{cdiKind + "=" + d.Name}})
	}
	data, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	temp := p.file(c.UID) + ".new" // CDI reads no file of that name
	if err := os.WriteFile(temp, data, 0o600); err != nil {
		return nil, err
	}
	return given, os.Rename(temp, p.file(c.UID))
}

// taken returns which claim has each GPU, but for those that this claim has.
func (p *plugin) taken(but types.UID) (map[string]types.UID, error) {
	files, err := filepath.Glob(p.file("*"))
	if err != nil {
		return nil, err
	}
	by := make(map[string]types.UID)
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var s spec
		if err := json.Unmarshal(data, &s); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, d := range s.Devices {
			claim, gpu, _ := strings.Cut(d.Name, "-gpu-")
			if claim != string(but) {
				by["gpu-"+gpu] = types.UID(claim)
			}
		}
	}
	return by, nil
}

func (p *plugin) file(claim types.UID) string {
	return filepath.Join(p.cdi, "fakegpu-"+string(claim)+".json")
}

// UnprepareResourceClaims removes the CDI files of the claims.
func (p *plugin) UnprepareResourceClaims(_ context.Context,
	claims []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	results := make(map[types.UID]error)
	for _, c := range claims {
		err := os.Remove(p.file(c.UID))
		if os.IsNotExist(err) {
			err = nil
		}
		results[c.UID] = err
	}
	return results, nil
}

// HandleError prints the error.
func (p *plugin) HandleError(_ context.Context, err error, msg string) {
	fmt.Fprintf(os.Stderr, "fakegpu: %s: %v\n", msg, err)
}
