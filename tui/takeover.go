package tui

import (
	"cmp"
	"fmt"
	"os/exec"

	tea "charm.land/bubbletea/v2"

	"fleetdeck/fleet"
)

// backMsg is the end of a command that had the terminal.
type backMsg struct {
	what string
	err  error
}

// editedMsg is a text that came back from the editor.
type editedMsg struct {
	text string
	err  error
}

// handOver gives the terminal to a command until that ends.
func (m *Model) handOver(what string, command func() (*exec.Cmd, error), done func(error) tea.Msg) tea.Cmd {
	back := func(err error) tea.Msg {
		defer m.rescue()
		return done(err)
	}
	return func() tea.Msg {
		c, err := command()
		if err != nil {
			return backMsg{what, err}
		}
		if c == nil {
			return backMsg{what, fmt.Errorf("there is no command for it")}
		}
		return tea.Exec(&attachment{c, m}, back)()
	}
}

func isBack(what string) func(error) tea.Msg {
	return func(err error) tea.Msg { return backMsg{what, err} }
}

// backFrom takes the terminal back.
func (m *Model) backFrom(msg backMsg) tea.Cmd {
	m.away, m.focused = false, true
	cmd := m.refresh()
	if msg.err == nil {
		return cmd
	}
	return tea.Batch(cmd, m.record(end{level: levelAlarm, text: msg.what + ": " + msg.err.Error()}, m.selectedTree()))
}

// open does what enter does: it takes over the terminal of the selected member, or goes to the tree of the selected row.
func (m *Model) open() tea.Cmd {
	switch m.listed() {
	case viewReservations, viewQueue, viewEvents, viewHistory:
		tree := m.selectedTree()
		if tree == "" {
			return nil
		}
		return m.jump(viewTrees, m.trees, tree)
	case viewNodes:
		return m.membersOfNode()
	}
	x := m.selectedMember()
	switch {
	case x == nil && m.selectedTree() == "":
		return nil
	case x == nil:
		return m.say(levelInfo, "nobody to attach to in "+m.short(m.selectedTree()), m.keys.Spawn.Help().Key+" dispatches an agent")
	case m.opts.ReadOnly:
		return m.say(levelInfo, "attach is off: this console is read-only", "")
	case !x.Alive():
		return m.say(levelWarn, clean(x.ID)+" has ended: there is no terminal to attach to", "")
	}
	return m.attachTo(x)
}

func (m *Model) attachTo(x *fleet.Member) tea.Cmd {
	f, id := m.fleet, x.ID
	return m.handOver("attach", func() (*exec.Cmd, error) { return f.Attach(id) }, isBack("attach"))
}

// openShell opens a shell in the selected tree.
func (m *Model) openShell() tea.Cmd {
	return m.inTree("shell", m.fleet.Shell)
}

// openEditor opens the operator's editor in the selected tree.
func (m *Model) openEditor() tea.Cmd {
	return m.inTree("editor", m.fleet.Editor)
}

func (m *Model) inTree(what string, command func(tree string) (*exec.Cmd, error)) tea.Cmd {
	tree := m.selectedTree()
	if tree == "" {
		return m.say(levelInfo, "no tree is selected", "")
	}
	return m.handOver(what, func() (*exec.Cmd, error) { return command(tree) }, isBack(what))
}

// editText has the operator's editor work on a text, which comes back as an editedMsg.
func (m *Model) editText(text string) tea.Cmd {
	f := m.fleet
	var edited func() (string, error)
	return m.handOver("editor", func() (c *exec.Cmd, err error) {
		c, edited, err = f.EditText(text)
		return c, err
	}, func(err error) tea.Msg {
		text, readErr := edited() // also where the editor failed: it leaves nothing behind
		return editedMsg{text, cmp.Or(err, readErr)}
	})
}

// gotEdited puts a text from the editor where it belongs.
func (m *Model) gotEdited(msg editedMsg) tea.Cmd {
	m.away, m.focused = false, true
	if msg.err != nil {
		return m.record(end{level: levelAlarm, text: "editor: " + msg.err.Error() + ": the text is as it was"}, "")
	}
	if d, ok := m.dialog.(*spawnDialog); ok {
		d.task.set(msg.text)
	}
	return nil
}

// copyPath copies the selected tree's path.
func (m *Model) copyPath() tea.Cmd { return m.copyText("its path", m.selectedTree()) }

// copyID copies the id of what is selected.
func (m *Model) copyID() tea.Cmd {
	var id string
	switch m.listed() {
	case viewReservations:
		if e, ok := m.entries.current(); ok {
			id = e.ID
		}
	case viewQueue:
		if q, ok := m.queue.current(); ok {
			id = q.ID
		}
	case viewSlots:
		if s, ok := m.slots.current(); ok {
			id = s.Member
		}
	case viewHistory:
		if d, ok := m.history.current(); ok {
			return m.copyText("its command", d.Command)
		}
	case viewEvents:
		if d, ok := m.events.current(); ok {
			id = d.Member
		}
	case viewNodes:
		if n, ok := m.nodes.current(); ok {
			id = n.Name
		}
	default:
		if x := m.selectedMember(); x != nil {
			id = x.ID
		} else if e := m.ix.entry[m.selectedTree()]; e != nil {
			id = e.ID
		}
	}
	return m.copyText("its id", id)
}

// copyText copies through the terminal, which reaches the operator's clipboard over ssh too, where the terminal allows it.
func (m *Model) copyText(what, text string) tea.Cmd {
	if text == "" {
		return m.say(levelInfo, "there is nothing to copy here", "")
	}
	return tea.Batch(tea.SetClipboard(text), m.say(levelDone, "copied "+what+": "+cut(text, 60), "the terminal was asked to: not every one does"))
}
