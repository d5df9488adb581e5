package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/keeper"
)

// TestConsoleCarriesOutEveryActAndShowsWhatCameOfIt works a day at one console: each act by its keys, each time asking the
// command line whether what the screen says is so. Its log says how long each change took to the screen.
func TestConsoleCarriesOutEveryActAndShowsWhatCameOfIt(t *testing.T) {
	full(t)
	r, trees := newOperated(t, "", "api", "billing", "docs", "web")
	api, billing, docs := trees[0], trees[1], trees[2]
	script := filepath.Join(r.dir, "editor")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho edited by hand > \"$1\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("VISUAL", "")
	t.Setenv("EDITOR", script)
	c := r.open(120, 40)
	c.shows("daemon up")
	c.honest()
	memberIn := func(tree string) fleet.Member {
		for _, m := range r.alive() {
			if m.Tree == tree {
				return m
			}
		}
		return fleet.Member{}
	}
	occupied := func(event, name string) {
		t.Helper()
		c.untilShown(event, name+` .* occupied `)
	}

	r.step("spawn", func(t *testing.T) {
		c.selects("api")
		c.keys("s")
		c.untilShown("s", "Dispatch an agent")
		c.keys("\r")
		c.untilShown("enter", `api .* (dispatch…|reserved|occupied) `)
		occupied("a dispatch", "api")
		c.honest()
		if m := memberIn(api); m.Profile != "agent" || m.Role != "dev" {
			t.Errorf("the member in %s is %+v", api, m)
		}
	})

	refused := func(t *testing.T, tree string) {
		t.Helper()
		c.keys("s")
		c.shows("Dispatch an agent")
		c.keys("\x1b[Z\x1b[Z\x1b[Z\x1b[Z\x1b[Z") // to the tree, from the task
		c.keys(tree)
		c.keys("\r")
		c.shows("▌Task")
		c.keys("\r")
		c.untilShown("a refusal", `─ Refused ─`)
		c.shows("occupied")
	}
	r.step("refusal, and waiting", func(t *testing.T) {
		before := memberIn(api).ID
		c.selects("billing")
		refused(t, api)
		c.answers("w", "─ Refused ─")
		c.shows("wait for")
		if n := len(r.alive()); n != 1 {
			t.Errorf("%d members are alive while one waits", n)
		}
		r.must(nil, "stop", before)
		r.await("the one that waited is there", func() bool { m := memberIn(api); return m.ID != "" && m.ID != before })
		occupied("waited for", "api")
		c.honest()
	})
	r.step("refusal, and the queue", func(t *testing.T) {
		c.selects("billing")
		refused(t, api)
		c.answers("n", "─ Refused ─")
		c.shows("Queue a task")
		c.keys("later, please")
		c.keys("\r")
		c.untilShown("queue", "queued for")
		var queue []keeper.Task
		r.must(&queue, "queue", "ls")
		if len(queue) != 1 || queue[0].Task != "later, please" || queue[0].Tree != api {
			t.Fatalf("the queue is %+v", queue)
		}
		c.keys("5")
		c.shows("later, please")
		c.keys("D")
		c.answers("y", "out of the queue?")
		c.untilShown("take out of the queue", "taken out")
		if r.must(&queue, "queue", "ls"); len(queue) != 0 {
			t.Errorf("the queue is %+v", queue)
		}
		c.keys("1")
	})
	r.step("refusal, and a new worktree", func(t *testing.T) {
		c.selects("billing")
		refused(t, api)
		c.answers("t", "─ Refused ─")
		c.shows("▌Worktree")
		c.keys("side")
		c.keys("\r")
		c.untilShown("dispatch to a worktree", `/side .* occupied `)
		c.honest()
		if n := len(r.alive()); n != 2 {
			t.Errorf("%d members are alive, want one in the tree and one in its new worktree", n)
		}
	})
	r.step("prune", func(t *testing.T) {
		r.must(nil, "reserve", docs, "--profile", "agent", "--grace", "1ms")
		c.untilShown("a reservation ran out", `docs .*expired`)
		c.keys("P")
		c.untilShown("P", "Prune 1 reservation")
		c.r.await("the dialog takes its key", func() bool {
			c.keys("c")
			return strings.Contains(c.text(), "copied the command")
		})
		c.copied("fleetdeck --state " + r.state + " --config " + r.config + " prune")
		c.answers("y", "Prune 1 reservation")
		c.untilShown("prune", "pruned 1 reservation")
		if rows := r.reservations(); len(rows) != 0 {
			t.Errorf("reservations: %+v", rows)
		}
		c.honest()
	})
	r.step("release", func(t *testing.T) {
		r.must(nil, "reserve", docs, "--profile", "agent")
		c.untilShown("somebody reserves", `docs .* reserved `)
		c.honest()
		c.selects("docs")
		c.keys("R")
		c.answers("y", "Release this reservation?")
		c.untilShown("release", `docs .* free `)
		c.honest()
		if rows := r.reservations(); len(rows) != 0 {
			t.Errorf("reservations: %+v", rows)
		}
	})
	r.step("message", func(t *testing.T) {
		c.selects("api")
		c.keys("m")
		c.shows("─ Message ─")
		c.keys("carry on\r")
		c.untilShown("message", `told dev in \S*api: carry on`)
		c.untilShown("what was told is on the agent's screen", `│ carry on`)
		if out, _, _ := r.fleetdeck("screen", api); !strings.Contains(out, "carry on") {
			t.Errorf("the agent's screen holds %q", out)
		}
	})
	r.step("attach and back", func(t *testing.T) {
		c.selects("api")
		c.keys("\r")
		c.untilGone("attach", "daemon up")
		c.shows("carry on")
		c.keys("typed while attached\r")
		c.shows("typed while attached")
		c.keys("\x1d")
		c.untilShown("ctrl-]", "daemon up")
		c.honest()
	})
	r.step("answer", func(t *testing.T) {
		r.must(nil, "dispatch", billing, "--profile", "asker", "--wait")
		c.untilShown("an agent waits", `! 1 `)
		c.honest()
		c.selects("web")
		c.keys("w")
		c.until("w", func() bool { return strings.HasPrefix(c.row("billing"), "▌") })
		c.keys("i")
		c.shows("─ Answer ─")
		c.shows("Which database?")
		c.keys("the small one\r")
		c.untilShown("an answer", `got <the small one>`)
		c.untilShown("the second question", `│.*Sure\? 1 yes`)
		c.shows("2. no")
		c.keys("i")
		c.shows("choose at once")
		c.keys("1")
		c.untilShown("a digit", `key <1>`)
		c.honest()
		time.Sleep(600 * time.Millisecond) // what comes right behind a digit is no command: that is over after a pause
	})
	r.step("filter and palette", func(t *testing.T) {
		c.keys("/occupancy:free")
		c.untilShown("filter", `Trees 2/5`)
		if c.row("docs") == "" || c.row("web") == "" || c.row("api") != "" {
			t.Errorf("filtered for the free ones:\n%s", c.text())
		}
		c.keys("\r\x1b")
		c.untilShown("esc", `api .* occupied `)
		c.selects("api")
		c.keys(":explain")
		c.shows(": explain")
		c.keys("\r")
		c.untilShown("explain", `It is occupied: member `)
		c.keys("\x1b")
		c.untilGone("esc", "It is occupied: member ") // a key right behind an escape is another key
		c.honest()
	})
	r.step("diff, shell, editor and copy", func(t *testing.T) {
		if err := os.WriteFile(filepath.Join(docs, "file"), []byte("one\na new line\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		c.selects("docs")
		c.keys("d")
		c.untilShown("diff", `\+a new line`)
		c.keys("\x1b")
		c.untilGone("esc", "+a new line")
		c.keys("!")
		c.untilShown("shell", "shell in "+docs)
		c.keys("\r")
		c.untilShown("back from the shell", "daemon up")
		c.keys("s")
		c.shows("▌Task")
		c.keys("\x0f")
		c.untilShown("back from the editor", "edited by hand")
		c.keys("\x1b")
		c.untilGone("esc", "edited by hand")
		c.keys("y")
		c.copied(docs)
		c.honest()
	})
	r.step("restart and stop", func(t *testing.T) {
		before := memberIn(api).ID
		c.selects("api")
		c.keys("T")
		c.answers("y", "Restart this member?")
		r.await("another is there", func() bool { m := memberIn(api); return m.ID != "" && m.ID != before })
		after := memberIn(api).ID
		c.untilShown("restart", `· dev on agent · .*`+after[len(after)-7:])
		c.keys("X")
		c.answers("y", "Stop this member?")
		c.untilShown("stop", `api .* free `)
		c.honest()
		if m := memberIn(api); m.ID != "" {
			t.Errorf("it was not stopped: %+v", m)
		}
	})
	r.step("marks", func(t *testing.T) {
		c.selects("docs")
		c.keys(" j ")
		c.shows("2 marked")
		c.keys("s")
		c.shows("2 trees")
		c.keys("\r")
		occupied("dispatch of two", "docs")
		occupied("dispatch of two", "web")
		c.honest()
		c.selects("docs")
		c.keys(" j ")
		c.shows("2 marked")
		c.keys("X")
		c.answers("y", "Stop 2 members?")
		c.untilShown("stop of two", `docs .* free `)
		c.untilShown("stop of two", `web .* free `)
		c.honest()
		c.keys("\x1b")
		c.untilGone("esc", "2 marked")
	})
	r.step("the daemon is killed and comes back", func(t *testing.T) {
		before := r.alive()
		r.kill()
		c.untilShown("the daemon was killed", "DAEMON DOWN")
		c.shows("daemon down")
		r.must(nil, "up")
		c.untilGone("the daemon is back", "DAEMON DOWN")
		c.honest()
		if after := r.alive(); len(after) != len(before) {
			t.Errorf("alive: %+v, were %+v", after, before)
		}
	})
	r.step("resize", func(t *testing.T) {
		for _, s := range []struct {
			cols, rows int
			shows      string
		}{{40, 10, `occupied +\pL+\n`}, {39, 9, `40`}, {200, 60, `PROFILE`}, {120, 40, `tab next pane`}} {
			c.shrink(s.cols, s.rows)
			c.untilShown(fmt.Sprintf("resize to %dx%d", s.cols, s.rows), s.shows)
			if n := len(strings.Split(c.text(), "\n")); n != s.rows {
				t.Errorf("%d lines are drawn on %d", n, s.rows)
			}
		}
		c.shows("daemon up")
		c.honest()
	})
	if raw := c.output(); mouseReport.Match(raw) {
		t.Error("the mouse was asked for, which nobody has turned on")
	}
	c.quits()
	c.untouched()
}
