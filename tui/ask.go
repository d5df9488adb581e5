package tui

import (
	"context"
	"fmt"
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"fleetdeck/fleet"
)

// short is a tree's path for people.
func (m *Model) short(tree string) string { return clean(fleet.ShortPath(tree, m.opts.Home)) }

// inList is a tree's path in a list, whose title names the directory that all of them lie in.
func (m *Model) inList(tree string) string {
	if rest, ok := strings.CutPrefix(tree, m.ix.root+"/"); ok && m.ix.root != "" {
		return rest
	}
	return fleet.ShortPath(tree, m.opts.Home)
}

// open does what enter does: it takes over the terminal of the selected member, or goes to the tree of the selected row.
func (m *Model) open() tea.Cmd {
	if l := m.listed(); l == viewReservations || l == viewEvents {
		tree := m.selectedTree()
		if tree == "" {
			return nil
		}
		m.show(viewTrees)
		m.pane = paneList
		if !m.trees.goTo(tree) {
			return m.say(levelWarn, m.short(tree)+" is not in the list of trees", "")
		}
		return nil
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
	f, ctx, id := m.fleet, m.ctx, x.ID
	return func() tea.Msg {
		c := f.Attach(id)
		if c == nil {
			return attachedMsg{fmt.Errorf("attach to %s: there is no way to", id)}
		}
		return tea.Exec(&attachment{Cmd: c, ctx: ctx}, func(err error) tea.Msg { return attachedMsg{err} })()
	}
}

type attachedMsg struct{ err error }

// attached is back from an attachment.
func (m *Model) attached(msg attachedMsg) tea.Cmd {
	m.focused = true
	cmd := m.refresh()
	if msg.err == nil {
		return cmd
	}
	return tea.Batch(cmd, m.record(end{level: levelAlarm, text: "attach: " + msg.err.Error()}, m.selectedTree()))
}

// askStop asks whether to end the selected member.
func (m *Model) askStop() tea.Cmd {
	x := m.selectedMember()
	switch {
	case x == nil:
		return m.say(levelInfo, "no member is selected: there is nobody to stop", "")
	case !x.Alive():
		return m.say(levelInfo, clean(x.ID)+" has ended already", "")
	}
	target := *x
	what := "stop " + clean(target.ID)
	m.dialog = &confirm{
		name: "Stop this member?",
		text: []string{
			target.Role + " on " + target.Profile + " in " + m.short(target.Tree),
			"member " + target.ID + " · " + string(target.State) + " · up " + m.up(&target),
		},
		effect: "Its agent gets TERM, then KILL. What it has not saved is lost; its tree is free again.",
		yes:    yesKey("stop it"),
		do: func() tea.Cmd {
			return m.start(what, target.Tree, func(ctx context.Context) end {
				if err := m.fleet.Stop(ctx, target.ID); err != nil {
					return failed(what, err)
				}
				return end{level: levelInfo, text: "stopped " + clean(target.ID) + " in " + m.short(target.Tree)}
			})
		},
	}
	return nil
}

// askRelease asks whether to drop the selected reservation.
func (m *Model) askRelease() tea.Cmd {
	tree := m.selectedTree()
	e := m.ix.entry[tree]
	if m.listed() == viewReservations {
		e, _ = m.entries.current()
	}
	if e == nil {
		if tree == "" {
			return m.say(levelInfo, "no reservation is selected", "")
		}
		return m.say(levelInfo, "no reservation stands for "+m.short(tree), "")
	}
	target := *e
	what := "release " + m.short(target.Tree)
	effect := "It holds nothing any more; releasing it tidies the file."
	if target.Verdict == fleet.VerdictPending {
		effect = "Its tree counts as free at once. A worker that is still on its way there is refused by the daemon."
	}
	m.dialog = &confirm{
		name: "Release this reservation?",
		text: []string{
			m.short(target.Tree) + " · " + string(target.Verdict),
			"by " + dispatcher(target.Dispatcher),
			"id " + target.ID,
		},
		effect: effect,
		yes:    yesKey("release it"),
		do: func() tea.Cmd {
			return m.start(what, target.Tree, func(ctx context.Context) end {
				if err := m.fleet.Release(ctx, target.Tree, target.ID); err != nil {
					return failed(what, err)
				}
				return end{level: levelInfo, text: "released " + m.short(target.Tree)}
			})
		},
	}
	return nil
}

// messageDialog types a line to a member.
type messageDialog struct {
	to    fleet.Member
	input editor
}

// askMessage asks what to tell the selected member.
func (m *Model) askMessage() tea.Cmd {
	x := m.selectedMember()
	switch {
	case x == nil:
		return m.say(levelInfo, "no member is selected: there is nobody to tell", "")
	case !x.Alive():
		return m.say(levelInfo, clean(x.ID)+" has ended", "")
	}
	d := &messageDialog{to: *x, input: editor{hint: "typed into its terminal, with enter"}}
	m.dialog = d
	return nil
}

func (d *messageDialog) title() string       { return "Message" }
func (d *messageDialog) keys() []key.Binding { return []key.Binding{keySend, keyCancel} }
func (d *messageDialog) takesText() bool     { return true }

func (d *messageDialog) lines(m *Model, w, _ int) []string {
	state := m.member(d.to.State)
	out := []string{m.strong.of(cut("to "+d.to.Role+" in "+m.short(d.to.Tree), w-12)) + "  " + state.String()}
	if d.to.StateMessage != "" {
		out = append(out, m.faint.of("“"+cut(d.to.StateMessage, w-2)+"”"))
	}
	out = append(out, "")
	for i, l := range d.input.view(m, w-2, 1+len(d.input.value())/max(w-2, 1), true) {
		head := "  "
		if i == 0 {
			head = m.accent.of("› ")
		}
		out = append(out, head+l)
	}
	return out
}

func (d *messageDialog) update(m *Model, msg tea.Msg) tea.Cmd {
	if k, ok := msg.(tea.KeyPressMsg); ok {
		switch {
		case key.Matches(k, keyCancel):
			m.dialog = nil
			return nil
		case key.Matches(k, keySend):
			text, to := d.input.value(), d.to
			if strings.TrimSpace(text) == "" {
				return nil
			}
			m.dialog = nil
			what := "message to " + clean(to.ID)
			return m.start(what, to.Tree, func(ctx context.Context) end {
				if err := m.fleet.Send(ctx, to.ID, text); err != nil {
					return failed(what, err)
				}
				return end{level: levelInfo, text: "told " + to.Role + " in " + m.short(to.Tree) + ": " + text}
			})
		}
	}
	d.input.update(msg)
	return nil
}
