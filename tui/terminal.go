package tui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"fleetdeck/fleet"
)

// title is the terminal's title.
func (m *Model) title() string {
	s := "fleetdeck · "
	if m.opts.Recorded {
		s += "recording · "
	}
	s += plural(len(m.ix.trees), "tree", "trees")
	if m.ix.waiting > 0 {
		s += fmt.Sprintf(" · %d waiting", m.ix.waiting)
	}
	return s
}

// programStatus tells terminals that can show it whether somebody waits for a person, or something is under way.
func (m *Model) programStatus() *tea.ProgramStatus {
	switch {
	case m.ix.waiting > 0:
		return &tea.ProgramStatus{State: tea.ProgramStateBlocked, Message: plural(m.ix.waiting, "agent waits", "agents wait") + " for you"}
	case len(m.acts) > 0:
		return &tea.ProgramStatus{State: tea.ProgramStateWorking}
	}
	return &tea.ProgramStatus{State: tea.ProgramStateIdle}
}

// notify tells the operator's terminal that a member has begun to wait for a person.
func (m *Model) notify(before index) tea.Cmd {
	if !before.loaded || m.opts.Notify == "none" {
		return nil
	}
	for _, x := range m.ix.members {
		if old := before.member[x.ID]; x.State != fleet.StateWaiting || old != nil && old.State == x.State {
			continue
		}
		text := clean(x.Role + " in " + m.short(x.Tree) + " waits for you: " + x.StateMessage)
		switch m.opts.Notify {
		case "osc9":
			return tea.Raw(ansi.Notify(text))
		case "osc777":
			return tea.Raw("\x1b]777;notify;fleetdeck;" + strings.ReplaceAll(text, ";", ",") + "\a")
		}
		return tea.Raw("\a")
	}
	return nil
}
