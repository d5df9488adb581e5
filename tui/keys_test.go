package tui

import (
	"reflect"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
)

func TestNoKeyIsBoundTwiceAndNoneIsABareSpace(t *testing.T) {
	k := newKeymap()
	all := k.actions()
	seen, names := map[string]string{}, map[string]bool{}
	for _, a := range all {
		if a.key.Help().Key == "" || a.key.Help().Desc == "" {
			t.Errorf("%s has no help", a.name)
		}
		if names[a.name] {
			t.Errorf("two actions are called %s", a.name)
		}
		names[a.name] = true
		for _, s := range a.key.Keys() {
			if text := notAKey(s); text != "" {
				t.Errorf("%s: %s", a.name, text)
			}
			if other, ok := seen[s]; ok {
				t.Errorf("%s is bound to %s and to %s", s, other, a.name)
			}
			seen[s] = a.name
			if a.destroys && (s != strings.ToUpper(s) || len(s) != 1) {
				t.Errorf("%s destroys and is bound to %q, which is no shifted letter", a.name, s)
			}
		}
	}
	if got, want := len(all), reflect.TypeFor[keymap]().NumField(); got != want {
		t.Errorf("there are %d actions for %d keys", got, want)
	}
}

func TestSpaceIsAKey(t *testing.T) {
	m := still(crowd(200, 0), 80, 24, Options{})
	typed(m, "space")
	if m.trees.marked() != 1 {
		t.Error("space does not mark")
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
