package tui

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"charm.land/bubbles/v2/key"
	"github.com/google/go-cmp/cmp"
)

// viewsInWords is what each view is for, in their order.
var viewsInWords = [...]string{
	viewTrees:        "Home. Every known tree: its branch (`*` where something is not committed), how many commits that is ahead of its upstream (`↑`) and behind it (`↓`) as git knew at the last fetch, who has it, and for how long still. Beside it the live screen of the selected tree's member, or what holds the tree, or who was there last; below it the reservations and the events.",
	viewMembers:      "Every agent, the living first, with its screen in its own colours. `!` before a role marks a charter that is not that of the role, `≠` one that was changed since; `+2` after a tree says that the agent holds two more, which say `with` and the name of that tree.",
	viewSlots:        "The places of limited roles: free, reserved with a countdown, or bound to a member.",
	viewReservations: "The reservation file, with what occupancy makes of each entry, who wrote it, and what will end it.",
	viewQueue:        "Tasks that wait until their tree is free, and those that the keeper gave up.",
	viewEvents:       "What happened, the newest first, with what this console was told.",
	viewHistory:      "Each command that a console issued, this one or another, with how it ended and the command line that does the same. It is kept in `history.jsonl` in the state directory.",
	viewNodes:        "In a fleet of many hosts only: each host, whether its daemon is heard, and how many members, trees and slots it has. Beside it who works there, and etcd's servers as this host sees them. `enter` goes to its members.",
}

// manual is docs/console.md.
func manual() string {
	m := New(newFake(example(instant(0))), Options{})
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	say("# The console")
	say("")
	say("`fleetdeck` opens it. This page is made from the console itself: a test fails where the two differ.")
	say("")
	say("It shows the fleet as it is, and how old that is: the line under the views says whether the daemon, the lock, the keeper and the")
	say("file are well. Whatever is stale or broken turns into a bar over the lists. Nothing is changed but by a key that the footer")
	say("shows or a dialog names; each change goes through the one dispatcher or the one reservation book, waits for the admission lock,")
	say("says for whom it waits, and is cancelled by `%s`.", m.keys.Back.Help().Key)
	say("")
	say("![the console](console.png)")
	say("")
	say("## Views")
	say("")
	say("| key | view | shows | columns |")
	say("| --- | --- | --- | --- |")
	for v := viewTrees; v <= lastView; v++ {
		k := [...]key.Binding{m.keys.Trees, m.keys.Members, m.keys.Slots, m.keys.Reservations, m.keys.Queue, m.keys.Events, m.keys.History, m.keys.Nodes}[v]
		say("| `%s` | %s | %s | %s |", k.Help().Key, m.of(v).name(), viewsInWords[v], strings.Join(m.of(v).columnNames(), ", "))
	}
	say("")
	say("In a [fleet of many hosts](cluster.md) trees, members, reservations and slots of all hosts stand in one list, with their node as a column, a")
	say("group and a field of the filter, such as `node:kite`; a tree of another host is named `NODE:PATH`. Acts on another host's members run")
	say("the command line (`fleetdeck attach`, `send`, `stop`). What only its own host can do, such as to release a reservation or to queue a task, is")
	say("answered with the command to run there. Events, queue and history are this host's. The line under the views names the fleet's keeper, etcd's")
	say("leader and how soon it answers; the admission lock is named only while somebody holds it, since no dispatch of such a fleet waits for it. Where")
	say("etcd is not heard a bar says for how long: what other hosts show is of then, and stays. A slot that nobody here has is `unsure` then, and another")
	say("host `unknown`. `◇ lost` marks what belongs to a host that is not heard: it stays taken, and the bar names the command that releases it. Lost")
	say("hosts come first in the list. On one host nothing of this is shown, and `8` can be any act's key: an act that is given it has it on many hosts too.")
	say("")
	say("On a narrow screen the columns to the right go first, and the detail lies below the list; from 40x10 down nothing is drawn but")
	say("what is needed.")
	say("")
	say("## Keys")
	for _, g := range groups(m.all) {
		say("")
		say("### %s", g.title)
		say("")
		say("| key | name | does |")
		say("| --- | --- | --- |")
		for _, a := range g.actions {
			say("| %s | %s | %s |", keysInWords(*a.key), a.name, a.key.Help().Desc)
		}
	}
	say("")
	say("What changes the fleet or a tree is off with `--read-only`. A key that ends something is a shifted letter, names what it is about")
	say("and how many, and its default is no.")
	say("")
	say("### In dialogs")
	say("")
	say("| dialog | keys |")
	say("| --- | --- |")
	for _, d := range []struct {
		name string
		dialog
	}{
		{"a question", &confirm{yes: yesKey("do it")}}, {"spawn, the tree", &spawnDialog{field: fieldTree}}, {"spawn, the further trees", &spawnDialog{field: fieldAlso}}, {"spawn, role and profile", &spawnDialog{field: fieldRole}},
		{"spawn, the worktree", &spawnDialog{field: fieldBranch}}, {"spawn, the task", &spawnDialog{field: fieldTask}}, {"message", &messageDialog{}},
		{"answer", &messageDialog{answer: true}}, {"answer, to a numbered menu", &messageDialog{answer: true, menus: true}}, {"refused", &heldDialog{}}, {"palette", &palette{}}, {"diff", &pager{turn: turns(m.keys.Diff, "since its branch began, or what is not committed")}}, {"explain", &pager{turn: turns(m.keys.Explain, "its member, or its tree")}}, {"help", &helpDialog{}},
	} {
		var ks []string
		for _, k := range d.keys() {
			ks = append(ks, "`"+k.Help().Key+"` "+k.Help().Desc)
		}
		say("| %s | %s |", d.name, strings.Join(ks, ", "))
	}
	say("")
	say("A dialog that comes up by itself takes no key until there was a pause of %s, so that a key that was meant for what stood", quiet)
	say("there before cannot answer it. A paste goes to a text only; elsewhere it does nothing.")
	say("")
	say("## Finding")
	say("")
	say("`%s` filters as it is typed: words that a row must hold, `!word` for one that it must not, and `field:value` for the rows whose", m.keys.Filter.Help().Key)
	say("field begins so, such as `state:waiting !role:dev`.")
	say("")
	say("| view | fields | grouped by |")
	say("| --- | --- | --- |")
	fields(&b, m.trees)
	fields(&b, m.members)
	fields(&b, m.slots)
	fields(&b, m.entries)
	fields(&b, m.queue)
	fields(&b, m.events)
	fields(&b, m.history)
	fields(&b, m.nodes)
	say("")
	say("## Settings")
	say("")
	say("In fleetdeck.toml. A name that the console does not know, and a key that two acts have, is an error with its line.")
	say("")
	say("```toml")
	say("[console]")
	say("theme = \"auto\"          # auto | dark | light | plain (no colours) | colour-blind")
	say("mouse = false           # click, wheel, drag what separates the panes")
	say("strict_keys = false     # every act that changes the fleet takes a shifted letter")
	say("notify = \"bell\"         # when a member begins to wait: bell | none | osc9 | osc777")
	say("editor = [\"vim\"]        # else $VISUAL, else $EDITOR")
	say("shell = [\"zsh\", \"-i\"]   # else $SHELL")
	say("")
	say("[console.keys]          # by the names above; [] takes an act's keys away")
	say("spawn = [\"s\", \"ctrl+n\"]")
	say("")
	say("[console.columns]       # by view, in the order in which they are drawn")
	say("trees = [\"tree\", \"occupancy\", \"now\", \"branch\"]")
	say("")
	say("[console.sort]          # by view; a minus sorts from the other end")
	say("members = \"-up\"")
	say("```")
	return b.String()
}

func keysInWords(k key.Binding) string {
	out := make([]string, len(k.Keys()))
	for i, s := range k.Keys() {
		out[i] = "`" + keyName(s) + "`"
	}
	return strings.Join(out, " ")
}

func fields[T any](b *strings.Builder, l *list[T]) {
	var by []string
	for _, g := range l.groups {
		by = append(by, g.name)
	}
	fmt.Fprintf(b, "| %s | %s | %s |\n", l.title, strings.Join(sortedKeys(l.fields), ", "), strings.Join(by, ", "))
}

func TestManualIsWhatTheConsoleDoes(t *testing.T) {
	const page = "../docs/console.md"
	got := manual()
	if *update {
		if err := os.WriteFile(page, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(page)
	if err != nil {
		t.Fatalf("%v; run the test with -update to make it", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs from the console; run the test with -update (-want +got):\n%s", page, diff)
	}
}

// The names of settings in the page are those of Config.
func TestManualNamesEverySetting(t *testing.T) {
	text := manual()
	for i := range reflect.TypeFor[Config]().NumField() {
		name := reflect.TypeFor[Config]().Field(i).Name
		if name == "StrictKeys" {
			name = "strict_keys"
		}
		if !strings.Contains(text, strings.ToLower(name)) {
			t.Errorf("the page does not name %s", name)
		}
	}
}
