package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fleetdeck/fleet"
)

func TestConsoleSendsOneAgentOverSeveralTreesAndShowsWhoseTheyAre(t *testing.T) {
	t.Parallel()
	r, trees := newOperated(t, "", "api", "docs", "web")
	api, docs, web := trees[0], trees[1], trees[2]
	r.must(nil, "reserve", web, "--profile", "agent")
	c := r.open(120, 40)
	c.shows("daemon up")
	c.selects("api")
	c.keys("s")
	c.shows("▌Task")
	c.keys("\t\t") // over the tree to the further ones
	c.shows("▌Also")
	c.keys(web + "\r") // a path, which is taken as it is
	c.keys("docs\r")
	c.keys("\r")
	c.shows("▌Task")
	c.keys("\r")
	c.untilShown("a refusal", `─ Refused ─`)
	c.shows("web is reserved")
	c.shows("2 more trees")
	if rows := r.reservations(); len(rows) != 1 || len(r.alive()) != 0 {
		t.Errorf("after the refusal there are %+v and %+v", rows, r.alive())
	}
	r.must(nil, "release", web)
	c.answers("w", "─ Refused ─")
	for _, name := range []string{"api", "docs", "web"} {
		c.untilShown("one agent over all", name+` .* occupied `)
	}
	alive := r.alive()
	if len(alive) != 1 || alive[0].Tree != api || len(alive[0].Also) != 2 || alive[0].Also[0].Path != web || alive[0].Also[1].Path != docs {
		t.Fatalf("alive: %+v", alive)
	}
	c.selects("docs")
	c.shows("holds ")
	c.keys("x")
	c.shows("is as it is")
	c.keys("x")
	c.shows("Who says what of dev in")
	c.shows("member    " + alive[0].ID)
	c.keys("\x1b")
	c.untilGone("esc", "Who says what")
	c.quits()
	c.untouched()
}

func TestDiffSaysWhatAnAgentAddedSinceItsBranchBegan(t *testing.T) {
	t.Parallel()
	r := newRig(t, agents)
	api := r.committed("api")
	r.must(nil, "up")
	out, code := r.dispatch(api, "--profile", "worker", "--new-worktree", "side", "--wait")
	if code != 0 {
		t.Fatalf("exit %d: %+v", code, out)
	}
	side := out.Tree
	if err := os.WriteFile(filepath.Join(side, "made"), []byte("by the agent\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r.git(side, "add", ".")
	r.git(side, "commit", "--quiet", "-m", "Make it")
	if text, _, code := r.fleetdeck("diff", side); code != 0 || text != "" {
		t.Errorf("what is not committed: exit %d, %q", code, text)
	}
	for _, args := range [][]string{{"--commits"}, {"--base", "HEAD~1"}} {
		text, stderr, code := r.fleetdeck(append([]string{"diff", side}, args...)...)
		if code != 0 || !strings.HasPrefix(text, "since ") || !strings.Contains(text, " Make it\n") || !strings.Contains(text, "+by the agent") {
			t.Errorf("%v: exit %d: %s%s", args, code, text, stderr)
		}
	}
	for _, args := range [][]string{{"--base", ""}, {"--base", "nothing"}} {
		if _, stderr, code := r.fleetdeck(append([]string{"diff", side}, args...)...); code != 2 {
			t.Errorf("%v: exit %d, want 2: %s", args, code, stderr)
		}
	}
	var doc struct{ Tree, Diff, Base string }
	if r.must(&doc, "diff", side, "--commits", "--stat"); doc.Tree != side || len(doc.Base) != 40 || !strings.Contains(doc.Diff, " made | 1 +") {
		t.Errorf("as JSON: %+v", doc)
	}
	if r.tree(side).Occupancy != fleet.Taken {
		t.Errorf("%s is %+v", side, r.tree(side))
	}
}
