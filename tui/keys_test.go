package tui

import (
	"strings"
	"testing"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
)

func TestNoKeyIsBoundTwiceAndNoneIsABareSpace(t *testing.T) {
	k := newKeymap()
	seen := map[string]string{}
	for _, b := range k.all() {
		if b.Help().Key == "" || b.Help().Desc == "" {
			t.Errorf("%v has no help", b.Keys())
		}
		for _, s := range b.Keys() {
			if s == " " {
				t.Errorf("%s is bound to a bare space, which is never sent: use \"space\"", b.Help().Desc)
			}
			if other, ok := seen[s]; ok {
				t.Errorf("%s is bound to %q and to %q", s, other, b.Help().Desc)
			}
			seen[s] = b.Help().Desc
		}
	}
	var inHelp []key.Binding
	for _, g := range k.groups() {
		inHelp = append(inHelp, g.keys...)
	}
	if got, want := len(inHelp), len(k.all()); got != want {
		t.Errorf("help shows %d of %d keys", got, want)
	}
	for _, b := range []key.Binding{k.Prune, k.Release, k.Stop} {
		for _, s := range b.Keys() {
			if s != strings.ToUpper(s) || len(s) != 1 {
				t.Errorf("%s destroys and is bound to %q, which is no shifted letter", b.Help().Desc, s)
			}
		}
	}
}

func TestSpaceIsAKey(t *testing.T) {
	m := still(crowd(200, 0), 80, 24, Options{})
	typed(m, "space")
	if m.trees.at == 0 {
		t.Error("space does not page down")
	}
}

func TestTheRouterStaysARouter(t *testing.T) {
	m := still(example(instant(0)), 80, 24, Options{})
	for _, msg := range []tea.Msg{nil, 7, "unknown", tea.KeyReleaseMsg{Code: 'X'}, tea.MouseClickMsg{}} {
		if m.Update(msg); m.dialog != nil {
			t.Errorf("%T opens a dialog", msg)
		}
	}
}
