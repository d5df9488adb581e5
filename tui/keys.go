package tui

import (
	"strings"
	"unicode"

	"charm.land/bubbles/v2/key"
)

// keymap is every key of the console outside of text. Footer, help, palette and documentation are made from it.
//
// A key that destroys is a shifted letter, and ctrl+d only ever scrolls.
type keymap struct {
	Up, Down, Top, Bottom, HalfUp, HalfDown, PageUp, PageDown key.Binding
	NextPane, PrevPane, Placement, Zoom                       key.Binding

	Trees, Members, Slots, Reservations, Queue, Events, History, Nodes key.Binding
	GoTo, Waiting, Filter, Faults, Group                               key.Binding
	SortNext, SortPrev, SortReverse, Refresh, Palette, Help            key.Binding
	Mark, Range, MarkAll                                               key.Binding

	Spawn, Enqueue, Attach, Message, Answer  key.Binding
	Shell, Edit, Diff, Explain, Copy, CopyID key.Binding
	Prune, Release, Stop, Restart, Unqueue   key.Binding
	Back, Quit, ForceQuit, Suspend           key.Binding
}

// bind makes a binding: the keys, how they are written, and what they do.
func bind(help, desc string, keys ...string) key.Binding {
	return key.NewBinding(key.WithKeys(keys...), key.WithHelp(help, desc))
}

func newKeymap() keymap {
	return keymap{
		Up:        bind("k/↑", "up", "k", "up"),
		Down:      bind("j/↓", "down", "j", "down"),
		Top:       bind("g/home", "first", "g", "home"),
		Bottom:    bind("G/end", "last", "G", "end"),
		HalfUp:    bind("ctrl+u", "half a page up", "ctrl+u"),
		HalfDown:  bind("ctrl+d", "half a page down", "ctrl+d"),
		PageUp:    bind("pgup", "page up", "pgup", "ctrl+b"),
		PageDown:  bind("pgdn", "page down", "pgdown", "ctrl+f"),
		NextPane:  bind("tab", "next pane", "tab"),
		PrevPane:  bind("shift+tab", "previous pane", "shift+tab"),
		Placement: bind("p", "place the detail pane", "p"),
		Zoom:      bind("z", "zoom this pane", "z"),

		Trees:        bind("1", "trees", "1"),
		Members:      bind("2", "members", "2"),
		Slots:        bind("3", "slots", "3"),
		Reservations: bind("4", "reservations", "4"),
		Queue:        bind("5", "queue", "5"),
		Events:       bind("6", "events", "6"),
		History:      bind("7", "history", "7"),
		Nodes:        bind("8", "nodes", "8"),

		GoTo:        bind("o", "go to slot, member, tree", "o"),
		Waiting:     bind("w", "next that waits for you", "w"),
		Filter:      bind("/", "filter", "/"),
		Faults:      bind("f", "faults only", "f"),
		Group:       bind("b", "group by the next thing", "b"),
		SortNext:    bind(">", "sort by the next column", ">"),
		SortPrev:    bind("<", "sort by the column before", "<"),
		SortReverse: bind("-", "reverse the order", "-"),
		Refresh:     bind("r", "refresh", "r", "ctrl+l"),
		Palette:     bind(":", "every act by name", ":", "ctrl+p"),
		Help:        bind("?", "help", "?"),

		Mark:    bind("space", "mark", "space"),
		Range:   bind("v", "mark to here", "v"),
		MarkAll: bind("*", "mark all shown", "*"),

		Spawn:   bind("s", "spawn", "s"),
		Enqueue: bind("n", "queue a task", "n"),
		Attach:  bind("enter", "attach", "enter", "a"),
		Message: bind("m", "message", "m"),
		Answer:  bind("i", "answer", "i"),
		Shell:   bind("!", "shell in its tree", "!"),
		Edit:    bind("e", "edit its tree", "e"),
		Diff:    bind("d", "diff", "d"),
		Explain: bind("x", "explain", "x"),
		Copy:    bind("y", "copy its path", "y"),
		CopyID:  bind("c", "copy its id", "c"),
		Prune:   bind("P", "prune", "P"),
		Release: bind("R", "release", "R"),
		Stop:    bind("X", "stop", "X"),
		Restart: bind("T", "restart", "T"),
		Unqueue: bind("D", "take out of the queue", "D"),

		Back:      bind("esc", "back or cancel", "esc"),
		Quit:      bind("q", "home, or quit", "q"),
		ForceQuit: bind("ctrl+c", "quit at once", "ctrl+c"),
		Suspend:   bind("ctrl+z", "suspend", "ctrl+z"),
	}
}

// rebind gives b other keys. The first of them is the one that is shown.
func rebind(b *key.Binding, keys []string) {
	help := make([]string, len(keys))
	for i, k := range keys {
		help[i] = keyName(k)
	}
	b.SetKeys(keys...)
	b.SetHelp(strings.Join(help[:min(len(help), 2)], "/"), b.Help().Desc)
}

// keyName is a key as people write it.
func keyName(k string) string {
	switch k {
	case "up":
		return "↑"
	case "down":
		return "↓"
	case "left":
		return "←"
	case "right":
		return "→"
	case "pgdown":
		return "pgdn"
	}
	return k
}

// shifted is the shifted form of a key that is one small letter.
func shifted(k string) (string, bool) {
	if r := []rune(k); len(r) == 1 && unicode.IsLower(r[0]) {
		return string(unicode.ToUpper(r[0])), true
	}
	return k, false
}

// The keys of dialogs.
var (
	keyNo        = bind("enter/esc", "no", "n", "enter", "esc", "q")
	keyClose     = bind("esc", "close", "esc", "q", "?", "enter")
	keyCancel    = bind("esc", "cancel", "esc")
	keySend      = bind("enter", "send", "enter")
	keyDispatch  = bind("enter", "dispatch", "enter")
	keyPick      = bind("enter", "choose", "enter")
	keyAdd       = bind("enter", "add it", "enter")
	keyTakeOut   = bind("backspace", "take the last out", "backspace")
	keyRun       = bind("enter", "do it", "enter")
	keyNewline   = bind("alt+enter", "new line", "alt+enter", "shift+enter", "ctrl+j")
	keyNextField = bind("tab", "next field", "tab")
	keyPrevField = bind("shift+tab", "previous field", "shift+tab")
	keyLeft      = bind("←", "previous", "left", "h")
	keyRight     = bind("→", "next", "right", "l", "space")
	keyListUp    = bind("↑", "up", "up", "ctrl+p")
	keyListDown  = bind("↓", "down", "down", "ctrl+n")
	keyApply     = bind("enter", "keep the filter", "enter")
	keyClear     = bind("esc", "clear the filter", "esc")
	keyFreeOnly  = bind("ctrl+t", "free ones only", "ctrl+t")
	keyEditor    = bind("ctrl+o", "in the editor", "ctrl+o")
	keyToQueue   = bind("ctrl+r", "queue it instead", "ctrl+r")
	keyCopyLine  = bind("c", "copy the command", "c")
	keyWait      = bind("w", "wait for the tree", "w")
	keyQueueIt   = bind("n", "queue it", "n")
	keyBeside    = bind("B", "dispatch beside it", "B")
	keyWorktree  = bind("t", "take a new worktree", "t")
)
