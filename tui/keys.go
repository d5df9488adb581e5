package tui

import (
	"reflect"

	"charm.land/bubbles/v2/key"
)

// keymap is every key of the console outside of text. Footer, help and documentation are made from it.
//
// A key that destroys is a shifted letter, and ctrl+d only ever scrolls.
type keymap struct {
	Up, Down, Top, Bottom, HalfUp, HalfDown, PageUp, PageDown key.Binding
	NextPane, PrevPane                                        key.Binding
	Trees, Members, Slots, Reservations, Events, GoTo         key.Binding

	Filter, Spawn, Attach, Message, Prune, Release, Stop key.Binding
	Help, Back, Refresh, Suspend, Quit, ForceQuit        key.Binding
}

// bind makes a binding: the keys, how they are written, and what they do.
func bind(help, desc string, keys ...string) key.Binding {
	return key.NewBinding(key.WithKeys(keys...), key.WithHelp(help, desc))
}

func newKeymap() keymap {
	return keymap{
		Up:       bind("k/↑", "up", "k", "up"),
		Down:     bind("j/↓", "down", "j", "down"),
		Top:      bind("g/home", "first", "g", "home"),
		Bottom:   bind("G/end", "last", "G", "end"),
		HalfUp:   bind("ctrl+u", "half a page up", "ctrl+u"),
		HalfDown: bind("ctrl+d", "half a page down", "ctrl+d"),
		PageUp:   bind("pgup", "page up", "pgup", "ctrl+b"),
		PageDown: bind("pgdn", "page down", "pgdown", "ctrl+f", "space"),
		NextPane: bind("tab", "next pane", "tab"),
		PrevPane: bind("shift+tab", "previous pane", "shift+tab"),

		Trees:        bind("1", "trees", "1"),
		Members:      bind("2", "members", "2"),
		Slots:        bind("3", "slots", "3"),
		Reservations: bind("4", "reservations", "4"),
		Events:       bind("5", "events", "5"),
		GoTo:         bind("o", "go to its slot, member or tree", "o"),

		Filter:  bind("/", "filter", "/"),
		Spawn:   bind("s", "spawn", "s"),
		Attach:  bind("enter", "attach", "enter", "a"),
		Message: bind("m", "message", "m"),
		Prune:   bind("P", "prune", "P"),
		Release: bind("R", "release", "R"),
		Stop:    bind("X", "stop", "X"),

		Help:      bind("?", "help", "?"),
		Back:      bind("esc", "back or cancel", "esc"),
		Refresh:   bind("r", "refresh", "r", "ctrl+l"),
		Suspend:   bind("ctrl+z", "suspend", "ctrl+z"),
		Quit:      bind("q", "quit", "q"),
		ForceQuit: bind("ctrl+c", "quit at once", "ctrl+c"),
	}
}

// changes are the keys that change the fleet. They are off where the console is read-only.
func (k *keymap) changes() []*key.Binding {
	return []*key.Binding{&k.Spawn, &k.Message, &k.Prune, &k.Release, &k.Stop}
}

// keyGroup is a titled part of the help.
type keyGroup struct {
	title string
	keys  []key.Binding
}

// groups is the whole keymap in the order in which help shows it.
func (k *keymap) groups() []keyGroup {
	return []keyGroup{
		{"Move", []key.Binding{k.Up, k.Down, k.Top, k.Bottom, k.HalfUp, k.HalfDown, k.PageUp, k.PageDown, k.NextPane, k.PrevPane}},
		{"See", []key.Binding{k.Trees, k.Members, k.Slots, k.Reservations, k.Events, k.GoTo, k.Filter, k.Refresh, k.Help}},
		{"Act", []key.Binding{k.Spawn, k.Attach, k.Message, k.Prune, k.Release, k.Stop}},
		{"Leave", []key.Binding{k.Back, k.Quit, k.ForceQuit, k.Suspend}},
	}
}

// all is every binding of the keymap.
func (k *keymap) all() []key.Binding {
	v := reflect.ValueOf(*k)
	out := make([]key.Binding, v.NumField())
	for i := range out {
		out[i] = v.Field(i).Interface().(key.Binding)
	}
	return out
}

// The keys of dialogs.
var (
	keyNo        = bind("enter/esc", "no", "n", "enter", "esc", "q")
	keyClose     = bind("esc", "close", "esc", "q", "?", "enter")
	keyCancel    = bind("esc", "cancel", "esc")
	keySend      = bind("enter", "send", "enter")
	keyDispatch  = bind("enter", "dispatch", "enter")
	keyPick      = bind("enter", "choose", "enter")
	keyNewline   = bind("alt+enter", "new line", "alt+enter", "shift+enter", "ctrl+j")
	keyNextField = bind("tab", "next field", "tab")
	keyPrevField = bind("shift+tab", "previous field", "shift+tab")
	keyLeft      = bind("←", "previous", "left", "h")
	keyRight     = bind("→", "next", "right", "l", "space")
	keyListUp    = bind("↑", "up", "up", "ctrl+p")
	keyListDown  = bind("↓", "down", "down", "ctrl+n")
	keyApply     = bind("enter", "keep the filter", "enter")
	keyClear     = bind("esc", "clear the filter", "esc")
)
