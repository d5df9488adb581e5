package tui

import (
	"fmt"

	"fleetdeck/fleet"
)

// apart is how many commits a tree's branch is ahead of its upstream and behind it, as git knew at the last fetch.
func apart(t *fleet.TreeRow) string {
	switch {
	case t.Upstream == "":
		return ""
	case t.Ahead == 0 && t.Behind == 0:
		return "="
	case t.Behind == 0:
		return fmt.Sprintf("↑%d", t.Ahead)
	case t.Ahead == 0:
		return fmt.Sprintf("↓%d", t.Behind)
	}
	return fmt.Sprintf("↑%d ↓%d", t.Ahead, t.Behind)
}

// upstream is apart in words.
func upstream(t *fleet.TreeRow) string {
	switch {
	case t.Ahead == 0 && t.Behind == 0:
		return "level with " + t.Upstream
	case t.Behind == 0:
		return plural(t.Ahead, "commit", "commits") + " ahead of " + t.Upstream
	case t.Ahead == 0:
		return plural(t.Behind, "commit", "commits") + " behind " + t.Upstream
	}
	return fmt.Sprintf("%s ahead of %s, %d behind", plural(t.Ahead, "commit", "commits"), t.Upstream, t.Behind)
}

// work is a tree's branch and what is in it that nobody else has: in words where w cells take them, else in the signs of the list.
func work(t *fleet.TreeRow, w int) string {
	words, signs := " · clean", ""
	if t.Dirty {
		words, signs = " · not all is committed", " *"
	}
	if t.Upstream != "" {
		words += " · " + upstream(t)
		signs += " · " + apart(t) + " " + t.Upstream
	}
	if width(clean(t.Branch+words)) <= w {
		return t.Branch + words
	}
	return cut(t.Branch, max(w-width(clean(signs)), 12)) + signs
}
