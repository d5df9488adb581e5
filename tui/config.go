package tui

import (
	"fmt"
	"slices"
	"strings"

	"charm.land/bubbles/v2/key"
)

// Config is what an operator can set about the console, as the configuration file has it.
type Config struct {
	// Theme is "auto", "dark", "light", "plain" or "colour-blind"; empty is "auto".
	Theme string
	// Mouse turns on clicks, the wheel and dragging of what separates the panes.
	Mouse bool
	// StrictKeys moves every act that changes the fleet to a shifted letter.
	StrictKeys bool
	// Notify is how the terminal is told that a member has begun to wait: "none", "bell", "osc9" or "osc777"; empty is "bell".
	Notify string
	// Keys are other keys for actions, Columns the columns of a view in their order, Sort the column that a view is sorted
	// by, with a minus in front for the other direction.
	Keys    map[string][]string
	Columns map[string][]string
	Sort    map[string]string
}

// Problem is something wrong with a [Config].
type Problem struct {
	Key  string // the setting, such as "keys.spawn"
	Text string
}

// Check says everything that is wrong with c: unknown names, keys that cannot be pressed, and keys that two actions have.
func (c Config) Check() []Problem {
	m := New(nil, Options{})
	_, problems := m.configure(c)
	return problems
}

// configure takes c on as far as it is right, and says what is not.
func (m *Model) configure(c Config) ([]action, []Problem) {
	m.keys = newKeymap()
	all := m.keys.actions()
	problems := rebindAll(all, c)
	views := m.allLists()
	for _, name := range sortedKeys(c.Columns) {
		l, ok := views[name]
		if !ok {
			problems = append(problems, Problem{"columns." + name, unknown("view", name, sortedKeys(views))})
		} else if text := l.choose(c.Columns[name]); text != "" {
			problems = append(problems, Problem{"columns." + name, text})
		}
	}
	for _, name := range sortedKeys(c.Sort) {
		l, ok := views[name]
		if !ok {
			problems = append(problems, Problem{"sort." + name, unknown("view", name, sortedKeys(views))})
		} else if text := l.order(c.Sort[name]); text != "" {
			problems = append(problems, Problem{"sort." + name, text})
		}
	}
	return all, problems
}

// rebindAll gives the actions the keys of c.
func rebindAll(all []action, c Config) (problems []Problem) {
	byName := map[string]*action{}
	var names []string
	for i := range all {
		byName[all[i].name] = &all[i]
		names = append(names, all[i].name)
	}
	if c.StrictKeys {
		for i := range all {
			strict(&all[i])
		}
	}
	for _, name := range sortedKeys(c.Keys) {
		a, keys, at := byName[name], c.Keys[name], "keys."+name
		switch {
		case a == nil:
			problems = append(problems, Problem{at, unknown("action", name, names)})
			continue
		case len(keys) == 0 && (name == "quit-now" || name == "back"):
			problems = append(problems, Problem{at, name + " needs a key"})
			continue
		}
		ok := true
		for _, k := range keys {
			if text := unusable(k, a, c.StrictKeys); text != "" {
				problems, ok = append(problems, Problem{at, text}), false
			}
		}
		if ok {
			rebind(a.key, keys)
		}
	}
	yield(all, c)
	seen := map[string]string{}
	for i := range all {
		for _, k := range all[i].key.Keys() {
			if other, ok := seen[k]; ok {
				at := "keys." + all[i].name
				if _, set := c.Keys[all[i].name]; !set {
					at = "keys." + other
				}
				problems = append(problems, Problem{at, fmt.Sprintf("%q is the key of both %s and %s: give one of them another", k, other, all[i].name)})
			}
			seen[k] = all[i].name
		}
	}
	return problems
}

// yield takes from an action that is for many hosts alone, unless its keys are set, those that another was given: on one host it is not
// there at all.
func yield(all []action, c Config) {
	given := map[string]bool{}
	for _, keys := range c.Keys {
		for _, k := range keys {
			given[k] = true
		}
	}
	for _, a := range all {
		if _, set := c.Keys[a.name]; a.many && !set {
			rebind(a.key, slices.DeleteFunc(slices.Clone(a.key.Keys()), func(k string) bool { return given[k] }))
		}
	}
}

// strict moves a change from small letters to their shifted forms.
func strict(a *action) {
	if !a.changes {
		return
	}
	keys := slices.Clone(a.key.Keys())
	moved := false
	for i, k := range keys {
		var ok bool
		keys[i], ok = shifted(k)
		moved = moved || ok
	}
	if moved {
		rebind(a.key, keys)
	}
}

// unusable says why k cannot be a key of a.
func unusable(k string, a *action, strict bool) string {
	if text := notAKey(k); text != "" {
		return text
	}
	_, small := shifted(k)
	switch {
	case a.destroys && (small || len([]rune(k)) == 1 && k == strings.ToLower(k)):
		return fmt.Sprintf("%s destroys, so %q cannot be its key: take a shifted letter, or one with ctrl or alt", a.name, k)
	case strict && a.changes && small:
		return fmt.Sprintf("%s changes the fleet, and strict_keys asks for a shifted letter: %q is not", a.name, k)
	case k == "ctrl+d":
		return "ctrl+d scrolls in every console like this one: take another key"
	}
	return ""
}

// named are the keys that have a name of more than one letter.
var named = []string{
	"up", "down", "left", "right", "home", "end", "pgup", "pgdown", "insert", "delete", "enter", "esc", "tab", "backspace", "space",
	"f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8", "f9", "f10", "f11", "f12",
}

// notAKey says why k is no key that a terminal sends.
func notAKey(k string) string {
	rest := k
	for _, mod := range []string{"ctrl+", "alt+", "shift+"} {
		rest = strings.TrimPrefix(rest, mod)
	}
	switch {
	case k == " ":
		return `the space bar is written "space"`
	case len([]rune(rest)) == 1 && rest != " ":
		return ""
	case slices.Contains(named, rest):
		return ""
	}
	return fmt.Sprintf("there is no key %q: write a character, or one of ctrl+x, alt+x, %s", k, strings.Join(named[:15], ", "))
}

func unknown(kind, name string, there []string) string {
	return fmt.Sprintf("there is no %s %q: there are %s", kind, name, strings.Join(there, ", "))
}

func sortedKeys[T any](m map[string]T) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// byKeyOf is the actions by key.
func byKeyOf(all []action) map[string]*action {
	out := map[string]*action{}
	for i := range all {
		for _, k := range all[i].key.Keys() {
			out[k] = &all[i]
		}
	}
	return out
}

// bound reports whether b has a key at all.
func bound(b key.Binding) bool { return len(b.Keys()) > 0 }
