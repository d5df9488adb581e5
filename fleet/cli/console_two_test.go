package cli_test

import (
	"strings"
	"testing"
)

// shown is the list of trees as a console shows it, without the cursor.
func (t *terminal) shown() string {
	var rows []string
	for _, l := range strings.Split(t.text(), "\n") {
		if strings.Contains(l, "Reservations ") {
			break
		}
		l, _, list := strings.Cut(l, "│")
		if list {
			rows = append(rows, strings.TrimRight(strings.Replace(l, "▌", " ", 1), " "))
		}
	}
	return strings.TrimSpace(strings.Join(rows, "\n"))
}

func TestTwoConsolesShowTheSameBothMayActAndTheLoserOfARaceIsTold(t *testing.T) {
	full(t)
	t.Parallel()
	r, trees := newOperated(t, "", "api", "billing", "docs")
	a, b := r.open(120, 40), r.open(120, 40)
	same := func() {
		t.Helper()
		for _, c := range []*terminal{a, b} {
			c.honest()
		}
		a.until("both show the same", func() bool { return a.shown() != "" && a.shown() == b.shown() })
	}
	same()
	r.step("one acts, the other sees it", func(t *testing.T) {
		a.selects("api")
		a.keys("s\r")
		b.untilShown("a dispatch of the other", `api .* occupied `)
		same()
		b.selects("api")
		b.keys("m")
		b.shows("─ Message ─")
		b.keys("from the other console\r")
		a.untilShown("a message of the other", `│ from the other console`)
	})
	r.step("a race for one tree", func(t *testing.T) {
		for _, tree := range []string{"billing", "docs"} {
			for _, c := range []*terminal{a, b} {
				c.selects(tree)
				c.keys("s")
				c.shows("▌Task")
			}
			a.keys("\r")
			b.keys("\r")
			refused := func(c *terminal) bool { return strings.Contains(c.text(), "─ Refused ─") }
			r.await("the loser is told", func() bool { return refused(a) || refused(b) })
			winner, loser := a, b
			if refused(a) {
				winner, loser = b, a
			}
			loser.shows("/" + tree)
			winner.untilShown("the winner's dispatch", tree+` .* occupied `)
			if refused(winner) {
				t.Error("both were refused")
			}
			loser.answers("\x1b", "─ Refused ─")
			same()
		}
		if n := len(r.alive()); n != len(trees) || len(r.begun(n)) != n {
			t.Errorf("%d members are alive, %d were started, want one a tree", n, len(r.starts()))
		}
	})
	r.step("the history of one is seen in the other", func(t *testing.T) {
		for _, c := range []*terminal{a, b} {
			c.keys("7")
			c.shows("History 6")
		}
		a.until("both show the same history", func() bool { return a.shown() != "" && a.shown() == b.shown() })
		for what, n := range map[string]int{"dispatch ": 5, "send ": 1} {
			if got := strings.Count(b.shown(), " "+what); got != n {
				t.Errorf("%d of %q in the history, want %d:\n%s", got, what, n, b.shown())
			}
		}
		a.keys("1")
		b.keys("1")
	})
	for _, c := range []*terminal{a, b} {
		c.quits()
		c.untouched()
	}
}
