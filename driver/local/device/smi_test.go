package device

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// program makes a shell script. Another process writes it: a file that this one has open for writing might be handed on
// to whatever a test next to this one starts, and cannot be run meanwhile.
func program(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "nvidia-smi")
	cmd := exec.Command("sh", "-c", `cat > "$0" && chmod 700 "$0"`, path)
	cmd.Stdin = strings.NewReader("#!/bin/sh\n" + text + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

// echo is a shell command that prints lines.
func echo(lines ...string) string {
	return "cat <<'END'\n" + strings.Join(lines, "\n") + "\nEND\n"
}

// Ensure that what nvidia-smi lists is understood, and that anything else is an error that says what.
func TestList(t *testing.T) {
	t.Parallel()
	const a, b = "GPU-a, NVIDIA H200, 0, 00000000:0A:00.0, 143771, 700.00, Disabled",
		"GPU-b, NVIDIA A100-SXM4-80GB, 1, 00000000:0B:00.0, 81920, 400.00, Enabled"
	h200 := Device{Name: "GPU-a", Type: "NVIDIA H200", MemoryGB: 143771. / 1024, Bus: "00000000:0A:00.0", LimitW: 700}
	for _, c := range []struct {
		name, script, err string
		want              []Device
	}{
		{"one", echo(a), "", []Device{h200}},
		{"none", `exit 0`, "", []Device{}},
		{"none, in words", echo("No devices were found"), "", []Device{}},
		{"a warning", echo(a, "WARNING: infoROM is corrupted at gpu 0000:0A:00.0"), "", []Device{h200}},
		{"unknown memory, limit and MIG", echo("GPU-a, NVIDIA GB10, 0, 0000000F:01:00.0, [N/A], [N/A], [N/A]"), "",
			[]Device{{Name: "GPU-a", Type: "NVIDIA GB10", Bus: "0000000F:01:00.0"}}},
		{"split", `[ $1 = -L ] && { ` +
			echo("GPU 0: NVIDIA H200 (UUID: GPU-a)", "GPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-b)",
				"  MIG 3g.40gb     Device  0: (UUID: MIG-1)", "  MIG 1g.10gb+me  Device  1: (UUID: MIG-2)") +
			"exit 0\n}\n" + echo(a, b), "", []Device{h200,
			{Name: "MIG-1", Type: "NVIDIA A100-SXM4-80GB MIG 3g.40gb", MemoryGB: 40, Index: 1, Bus: "00000000:0B:00.0",
				Slice: "3g.40gb"},
			{Name: "MIG-2", Type: "NVIDIA A100-SXM4-80GB MIG 1g.10gb+me", MemoryGB: 10, Index: 1,
				Bus: "00000000:0B:00.0", Slice: "1g.10gb+me"}}},
		{"twice", echo(a, a), "nvidia-smi: GPU-a twice, want each device once", nil},
		{"garbage", `head -c 3000 /dev/zero`, "has 1 fields, want the 7 of uuid,name", nil},
		{"bad memory", echo("GPU-a, X, 0, b, -3, 1, Disabled"), `GPU-a: memory.total "-3", want a number >= 0`, nil},
		{"fails", `echo "Failed to initialize NVML: Driver/library version mismatch"; exit 18`,
			"exit status 18: Failed to initialize NVML: Driver/library version mismatch", nil},
		{"fails on stderr", `echo "lost" >&2; exit 15`, "exit status 15: lost", nil},
		{"hangs", `exec sleep 300`, "no answer within 300ms", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := &SMI{Command: program(t, c.script)}
			if c.name == "hangs" {
				s.Patience = 300 * time.Millisecond
			}
			got, err := s.List(t.Context())
			if c.err == "" && (err != nil || !reflect.DeepEqual(got, c.want)) {
				t.Errorf("%+v, %v, want %+v", got, err, c.want)
			}
			if c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("%v, %v, want an error with %q", got, err, c.err)
			}
		})
	}
	if _, err := (&SMI{Command: filepath.Join(t.TempDir(), "nvidia-smi")}).List(t.Context()); err == nil {
		t.Error("no nvidia-smi, no error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (&SMI{Command: program(t, "sleep 300")}).List(ctx); err == nil {
		t.Error("asked by no one any more, no error")
	}
}

// row is what a sample of a GPU says.
func row(uuid string, fields ...string) string { return uuid + ", " + strings.Join(fields, ", ") }

// Ensure that what nvidia-smi says of GPUs at work is understood, also where it cannot say.
func TestSample(t *testing.T) {
	t.Parallel()
	const bus = "00000000:0A:00.0"
	idle := row("GPU-a", bus, "4", "0", "75.31", "31", "0x0000000000000001", "Disabled")
	quiet := Reading{UsedMiB: 4, Watts: 75.31, Joules: Unknown, Celsius: 31, Throttle: ThrottleIdle, Listed: true}
	with := func(change func(r *Reading)) map[string]Reading {
		r := quiet
		change(&r)
		return map[string]Reading{"GPU-a": r}
	}
	blank := func(r *Reading) { *r = Blank(); r.Listed = true }
	lost := func(why string) func(r *Reading) { return func(r *Reading) { blank(r); r.Lost = why } }
	const dead = "Unable to determine the device handle for GPU 0000:0A:00.0: GPU is lost.  Reboot the system to " +
		"recover this GPU"
	for _, c := range []struct {
		name, gpus, apps, err string
		want                  map[string]Reading
		partial               bool
	}{
		{"idle", echo(idle), "", "", with(func(*Reading) {}), false},
		{"busy", echo(row("GPU-a", bus, "70000", "98", "690.00", "70", "0x0000000000000004", "Enabled")),
			echo("GPU-a, 12, 69000", "GPU-a, 13, [N/A]"), "",
			with(func(r *Reading) {
				*r = Reading{70000, .98, 690, Unknown, 70, ThrottlePowerCap, true, "", true,
					[]Process{{12, 69000}, {13, Unknown}}}
			}), false},
		{"nothing to say", echo(row("GPU-a", bus, "[N/A]", "[Not Supported]", "ERR!", "[Unknown Error]", "N/A", "")),
			"", "", with(blank), false},
		{"processes hidden", echo(idle), echo("GPU-a, [Insufficient Permissions], [N/A]"), "",
			with(func(r *Reading) { r.Listed = false }), false},
		{"no processes, in words", echo(idle), echo("No running processes found"), "", with(func(*Reading) {}), false},
		{"a process on another GPU", echo(idle), echo("GPU-z, 12, 1"), "", with(func(*Reading) {}), false},
		{"lost, in a field", echo(row("GPU-a", bus, "[GPU is lost]", "[GPU is lost]", "[GPU is lost]", "[GPU is lost]",
			"[GPU is lost]", "[N/A]")), "", "",
			with(lost("GPU is lost")), false},
		{"to be reset", echo(row("GPU-a", bus, "[GPU requires reset]", "0", "1", "1", "0x0", "Disabled")), "", "",
			with(func(r *Reading) {
				*r = Reading{Unknown, 0, 1, Unknown, 1, 0, false, "GPU requires reset", true, nil}
			}), false},
		{"lost, by address", echo(dead), "", "", with(lost("GPU is lost.  Reboot the system to recover this GPU")),
			true},
		{"another lost", echo(idle, strings.Replace(dead, "0A", "0B", 1)) + "exit 15", "", "", with(func(*Reading) {}),
			true},
		{"all gone", "echo 'No devices were found'", "", "", map[string]Reading{}, false},
		{"twice", echo(idle, idle), "", "GPU-a twice, want each GPU once", nil, false},
		{"bad power", echo(row("GPU-a", bus, "4", "0", "NaN", "31", "0x1", "Disabled")), "",
			`GPU-a: power.draw "NaN", want a number >= 0`, nil, false},
		{"bad reasons", echo(row("GPU-a", bus, "4", "0", "1", "31", "0xg", "Disabled")), "",
			`throttle reasons "0xg", want a hexadecimal number`, nil, false},
		{"bad pid", echo(idle), echo("GPU-a, 1x, 3"), `GPU-a: process "1x", want a number`, nil, false},
		{"half a list", echo(idle), echo("GPU-a, 1"), "has 2 fields, want the 3 of gpu_uuid,pid,used_memory", nil,
			false},
		{"broken driver", "echo 'NVIDIA-SMI has failed because it couldn'\\''t communicate with the NVIDIA driver.'; " +
			"exit 9", "", "exit status 9: NVIDIA-SMI has failed", nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := &SMI{Command: program(t, "case $1 in --query-gpu=*) "+c.gpus+"\n;; *) "+c.apps+"\n;; esac"),
				buses: map[string]string{shortBus(bus): "GPU-a"}}
			got, err := s.Sample(t.Context())
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("%v, want an error with %q", err, c.err)
				}
				return
			}
			if err != nil || !reflect.DeepEqual(got.Readings, c.want) || got.Partial != c.partial || got.At.IsZero() {
				t.Errorf("%+v, %v, want %+v, partial %v", got, err, c.want, c.partial)
			}
		})
	}
}

// Ensure that columns which this nvidia-smi does not know are left out from then on.
func TestAbsentColumns(t *testing.T) {
	t.Parallel()
	calls := filepath.Join(t.TempDir(), "calls")
	s := &SMI{Command: program(t, `echo >>`+calls+`
case $1 in
*clocks_throttle_reasons*) echo 'Field "clocks_throttle_reasons.active" is not a valid field to query.'; exit 2 ;;
*display_active*) echo 'Field "display_active" is not a valid field to query.'; exit 2 ;;
--query-gpu=*) echo "GPU-a, 00000000:0A:00.0, 4, 50, 75.31, 31" ;;
esac`)}
	for range 2 {
		got, err := s.Sample(t.Context())
		if want := (Reading{4, .5, 75.31, Unknown, 31, 0, false, "", true, nil}); err != nil ||
			!reflect.DeepEqual(got.Readings["GPU-a"], want) {
			t.Errorf("%+v, %v, want %+v", got, err, want)
		}
	}
	if n, _ := exec.Command("wc", "-l", calls).Output(); !strings.HasPrefix(string(n), "6 ") {
		t.Errorf("%s calls, want 2 that fail and twice 2", n)
	}
	if _, err := (&SMI{Command: program(t, `echo 'Field "uuid" is not a valid field to query.'; exit 2`)}).Sample(
		t.Context()); err == nil {
		t.Error("no UUIDs, no error")
	}
}

// Ensure that slices are there as long as their GPU is, and that who cannot know pids gets none.
func TestSlicesAndBlind(t *testing.T) {
	t.Parallel()
	s := &SMI{Blind: true, parts: []slice{{"GPU-a", "1g.10gb", "MIG-1"}, {"GPU-z", "1g.10gb", "MIG-2"}},
		Command: program(t, "case $1 in --query-gpu=*) "+
			echo(row("GPU-a", "b", "4", "0", "1", "31", "0x1", "Disabled"))+" ;; *) echo GPU-a, 12, 1 ;; esac")}
	got, err := s.Sample(t.Context())
	if err != nil || !reflect.DeepEqual(got.Readings["MIG-1"], Blank()) || len(got.Readings) != 2 ||
		got.Readings["GPU-a"].Listed {
		t.Errorf("%+v, %v", got, err)
	}
}

// Ensure that the reasons of a low clock have words.
func TestThrottle(t *testing.T) {
	for bits, want := range map[Throttle]string{0: "", 1: "idle", 0x44: "power-cap,hardware-hot", 1 << 40: ""} {
		if bits.String() != want {
			t.Errorf("%#x: %q, want %q", uint64(bits), bits, want)
		}
	}
}

// FuzzTable has any text read as an answer: it is refused, or gives numbers in range and rows by distinct names.
func FuzzTable(f *testing.F) {
	f.Add("GPU-a, 00000000:0A:00.0, 4, 0, 75.31, 31, 0x0000000000000001, Disabled\n")
	f.Add("GPU-a, b, [N/A], ERR!, , 1e300, 0x, Enabled\nWARNING: x\n")
	f.Add("Unable to determine the device handle for GPU 0000:0A:00.0: GPU is lost.\n")
	f.Add("GPU-a, 12, 69000\nGPU-a, [N/A], 1\n")
	f.Add("GPU 0: X (UUID: GPU-a)\n  MIG 1g.10gb     Device  0: (UUID: MIG-1)\n")
	f.Fuzz(func(t *testing.T, text string) {
		if gpus, err := parseTable(text, sampleColumns); err == nil {
			readings, err := gpus.readings()
			if err == nil && len(readings) != len(gpus.rows) {
				t.Errorf("%d readings of %d rows", len(readings), len(gpus.rows))
			}
			for _, r := range readings {
				if err := r.validate(); err != nil {
					t.Error(err)
				}
			}
			_ = gpus.buses()
		}
		if gpus, err := parseTable(text, listColumns); err == nil {
			list, split, err := gpus.devices()
			if parts, bad := parseSlices(text); err == nil && bad == nil {
				_ = replaced(list, split, parts)
			}
		}
		readings := map[string]Reading{"GPU-a": {}}
		if apps, err := parseTable(text, appColumns); err == nil && apps.processes(readings) == nil {
			for _, p := range readings["GPU-a"].Processes {
				if p.PID < 0 || p.MiB < 0 && p.MiB != Unknown {
					t.Errorf("process %+v", p)
				}
			}
		}
		if profileGB(text) < 0 {
			t.Error(fmt.Sprint(profileGB(text)))
		}
	})
}
