package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"fleetdeck/fleet"
)

// flockOutside takes the admission lock in this process, as any script may, until release is called.
func (r *rig) flockOutside() (release func()) {
	r.t.Helper()
	f, err := os.OpenFile(r.file()+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		r.t.Fatal(err)
	}
	return func() { f.Close() }
}

// lastDeed is the last line of the history.
func (r *rig) lastDeed() (d fleet.Deed) {
	r.t.Helper()
	data, err := os.ReadFile(filepath.Join(r.state, "history.jsonl"))
	if err != nil {
		r.t.Fatal(err)
	}
	whole := data[:bytes.LastIndexByte(data, '\n')+1] // the next line may be under way
	lines := strings.Split(strings.TrimSpace(string(whole)), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &d); err != nil {
		r.t.Fatal(err)
	}
	return d
}

// standing is what an act under the lock may change: who is alive, the bytes of the file, and the trees and branches.
func (r *rig) standing() string {
	r.t.Helper()
	data, err := os.ReadFile(r.file())
	if err != nil && !os.IsNotExist(err) {
		r.t.Fatal(err)
	}
	var all []string
	for _, m := range r.alive() {
		all = append(all, m.ID+" in "+m.Tree)
	}
	trees, _ := filepath.Glob(filepath.Join(r.dir, "src", "*"))
	for _, tree := range trees {
		if strings.HasSuffix(tree, ".worktrees") {
			more, _ := filepath.Glob(filepath.Join(tree, "*"))
			all = append(all, more...)
			continue
		}
		all = append(all, tree+": "+strings.Join(strings.Fields(r.git(tree, "branch", "--list")), " "))
	}
	return fmt.Sprintf("%s\n%s", strings.Join(all, "\n"), data)
}

// TestEachActOfTheConsoleWaitsForTheLockSaysForWhomAndLeavesNothingBehind holds the lock from outside. One console is
// patient, and its acts are called off; the other is not, and its acts give up by themselves.
func TestEachActOfTheConsoleWaitsForTheLockSaysForWhomAndLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	full(t)
	r, trees := newOperated(t, "", "api", "billing", "docs", "web")
	api, docs := trees[0], trees[2]
	r.must(nil, "dispatch", api, "--profile", "agent", "--wait")
	r.must(nil, "reserve", docs, "--profile", "agent", "--grace", "10m")
	r.must(nil, "reserve", r.repo("stale"), "--profile", "agent", "--grace", "1ms")

	conf, err := os.ReadFile(r.config)
	if err != nil {
		t.Fatal(err)
	}
	hasty := *r
	hasty.config = filepath.Join(r.dir, "hasty.toml")
	text := strings.NewReplacer(`lock_wait = "20s"`, `lock_wait = "300ms"`, `prune_wait = "20s"`, `prune_wait = "300ms"`).Replace(string(conf))
	if err := os.WriteFile(hasty.config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	patient, quick := r.open(120, 40), hasty.open(120, 40)
	for _, c := range []*terminal{patient, quick} {
		c.shows("daemon up")
		c.shows("stale")
	}

	acts := []struct {
		name string
		do   func(c *terminal)
	}{
		{"dispatch", func(c *terminal) {
			c.selects("billing")
			c.keys("s")
			c.shows("▌Task")
			c.keys("\r")
		}},
		{"dispatch into a new worktree", func(c *terminal) {
			c.selects("billing")
			c.keys("s")
			c.shows("▌Task")
			c.keys("\x1b[Z")
			c.shows("▌Worktree")
			c.keys("side\r")
		}},
		{"dispatch into marked trees", func(c *terminal) {
			c.selects("billing")
			c.keys(" ")
			c.shows("1 marked")
			c.selects("web")
			c.keys(" ")
			c.shows("2 marked")
			c.keys("s")
			c.shows("▌Task")
			c.keys("\r")
		}},
		{"prune", func(c *terminal) {
			c.keys("P")
			c.answers("y", "Prune 1 reservation")
		}},
		{"release", func(c *terminal) {
			c.selects("docs")
			c.keys("R")
			c.answers("y", "Release this reservation?")
		}},
		{"restart", func(c *terminal) {
			c.selects("api")
			c.keys("T")
			c.answers("y", "Restart this member?")
		}},
	}
	before := r.standing()
	for _, act := range acts {
		r.step(act.name+" is called off", func(t *testing.T) {
			release := r.flockOutside()
			defer release()
			act.do(patient)
			patient.untilShown(act.name, fmt.Sprintf(`waiting for the admission lock · held by pid %d \(%s`, os.Getpid(), filepath.Base(os.Args[0])))
			patient.keys("\x1b")
			patient.untilGone("esc", "waiting for the admission lock")
			patient.untilGone("it is called off", "· cancelling")
			patient.shows("cancelled: ")
			r.await("the history says so", func() bool {
				d := r.lastDeed()
				return d.Outcome == "cancelled" && d.By.Pid == patient.cmd.Process.Pid
			})
			if after := r.standing(); after != before {
				t.Errorf("after it was called off: %s\nwant %s", after, before)
			}
		})
		r.step(act.name+" gives up", func(t *testing.T) {
			hasty.t = t
			release := r.flockOutside()
			defer release()
			act.do(quick)
			quick.shows("esc cancels")
			quick.untilGone(act.name, "esc cancels")
			quick.shows("busy")
			r.await("the history names the lock", func() bool {
				d := r.lastDeed()
				return d.Code == fleet.CodeLockBusy && d.By.Pid == quick.cmd.Process.Pid
			})
			if after := r.standing(); after != before {
				t.Errorf("after it gave up: %s\nwant %s", after, before)
			}
			quick.keys("\x1b")
		})
	}
	hasty.t = t
	r.step("the queue takes another lock", func(t *testing.T) {
		release := r.flockOutside()
		defer release()
		patient.selects("api")
		patient.keys("n")
		patient.shows("Queue a task")
		patient.keys("later\r")
		patient.untilShown("queue", "queued for")
	})
	r.step("what waited goes on", func(t *testing.T) {
		release := r.flockOutside()
		defer release()
		acts[0].do(patient)
		patient.untilShown("dispatch", `waiting for the admission lock · held by pid`)
		release()
		patient.untilShown("the lock is free", `billing .* occupied `)
		patient.honest()
	})
	for _, c := range []*terminal{patient, quick} {
		c.quits()
		c.untouched()
	}
}
