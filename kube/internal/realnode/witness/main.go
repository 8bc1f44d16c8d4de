// Command witness stands between a container and the program that trains in it: it writes down which GPUs the node gave
// the container, which ones the controller named, and becomes that program.
//
//	witness FILE PROGRAM ARGUMENT...   append a line to FILE, then run PROGRAM
//	witness pause                      wait for SIGTERM, as the first container of a pod does
//
// Each line of FILE is one Given as JSON. What the node gave replaces TRAINYARD_DEVICES, so that the program knows of
// no other.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Given is what a container was given, and what the controller reported to it.
type Given struct {
	Job, Attempt, Resume string
	Given                []string // UUIDs, from CDI, sorted
	Reported             []string // UUIDs, from TRAINYARD_DEVICES, sorted
	Width                string
	Meets                map[string]string // how the ranks of a gang find each other: variables of the names meets
	Time                 time.Time
}

// meets are the variables by which torchrun and its like find the other ranks.
var meets = []string{"MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "NNODES", "NODE_RANK", "NPROC_PER_NODE",
	"PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT"}

func main() {
	if len(os.Args) == 2 && os.Args[1] == "pause" {
		stop := make(chan os.Signal, 1)
		signal.Notify(stop, syscall.SIGTERM, os.Interrupt)
		<-stop
		return
	}
	if len(os.Args) < 3 {
		fail(fmt.Errorf("%d arguments, want a file and a program", len(os.Args)-1))
	}
	g := Given{Job: os.Getenv("TRAINYARD_JOB_ID"), Attempt: os.Getenv("TRAINYARD_ATTEMPT"),
		Resume:   os.Getenv("TRAINYARD_RESUME"),
		Reported: strings.Split(os.Getenv("TRAINYARD_DEVICES"), ","), Width: os.Getenv("TRAINYARD_NUM_GPUS"),
		Meets: make(map[string]string), Time: time.Now()}
	for _, name := range meets {
		g.Meets[name] = os.Getenv(name)
	}
	for _, e := range os.Environ() {
		if name, uuid, _ := strings.Cut(e, "="); strings.HasPrefix(name, "GPU_DEVICE_") {
			g.Given = append(g.Given, uuid)
		}
	}
	slices.Sort(g.Given)
	slices.Sort(g.Reported)
	if err := g.appendTo(os.Args[1]); err != nil {
		fail(err)
	}
	if err := os.Setenv("TRAINYARD_DEVICES", strings.Join(g.Given, ",")); err != nil {
		fail(err)
	}
	fail(syscall.Exec(os.Args[2], os.Args[2:], os.Environ()))
}

// appendTo writes one line at once: several containers may write to a file.
func (g *Given) appendTo(file string) error {
	line, err := json.Marshal(g)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "witness:", err)
	os.Exit(125)
}
