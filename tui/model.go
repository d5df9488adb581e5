package tui

import (
	"context"
	"os"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"fleetdeck/fleet"
)

// Options say how the console is.
type Options struct {
	Config
	// Recorded says that what is shown is a recording, which has no present.
	Recorded bool
	// ReadOnly turns off every key that changes the fleet, attaching included.
	ReadOnly bool
	// Home is written "~" in paths.
	Home string
	// Detach names the key that ends an attachment, for people. Empty means "ctrl-]".
	Detach string
	// NoColor draws without colours, whatever the terminal can do.
	NoColor bool
}

// view is one of the console's tabs.
type view int

const (
	viewTrees view = iota
	viewMembers
	viewSlots
	viewReservations
	viewQueue
	viewEvents
	viewHistory
	viewNodes // in a fleet of many hosts only
	lastView  = viewNodes
)

// pane is a part of a view that keys can go to.
type pane int

const (
	paneList pane = iota
	paneDetail
	paneReservations
	paneEvents
)

// Model is the whole state of the console. It is the one tea.Model: its parts have methods, not messages of their own.
type Model struct {
	fleet Fleet
	opts  Options
	// ctx ends with the console. It is kept here because a tea.Cmd is made in one call and runs in another.
	ctx    context.Context
	away   bool   // a command has the terminal
	rescue func() // deferred where the framework calls and guard cannot stand between
	pid    int
	keys   keymap
	all    []action
	styles

	byKey map[string]*action

	width, height int
	focused       bool // the terminal has the focus
	view          view
	pane          pane
	place         place
	zoomed        bool
	share         int  // how much of the room the detail was dragged to, in percent
	dragging      bool // what separates the panes is under the mouse

	ix index
	lists
	detail scroller
	search editor
	typing bool // the filter of the view is being typed

	polling poll
	screen  watch
	choices fleet.Choices
	acts    []*act
	assumed map[string]*assumption
	notices []*notice
	own     []*deed                // newest first
	last    choiceOf               // of the last dispatch
	lastIn  map[string]choiceOf    // of the last dispatch into a tree
	drafts  map[string]fleet.Order // what was to be dispatched into a tree and was refused
	dialog  dialog
	held    grace // keys that come right behind an answer which closed its dialog by itself
	serial  uint64
	heard   uint64 // the latest event that is known

	now      fleet.Instant // of the frame that is being made
	counting bool          // the frame shows something that changes by itself
	ticking  bool
	drawn    string
	shown    fleet.LockInfo // the lock as last looked at while an act waits
}

// New makes the model of a console over f.
func New(f Fleet, opts Options) *Model {
	if opts.Detach == "" {
		opts.Detach = "ctrl-]"
	}
	m := &Model{
		fleet: f, opts: opts, ctx: context.Background(), rescue: func() {}, pid: os.Getpid(), focused: true,
		assumed: make(map[string]*assumption), lastIn: make(map[string]choiceOf),
		drafts: make(map[string]fleet.Order),
	}
	m.restyle(opts.Theme != "light", !opts.NoColor)
	m.lists = m.newLists()
	m.all, _ = m.configure(opts.Config)
	m.byKey = byKeyOf(m.all)
	for i := range m.all {
		if a := &m.all[i]; a.changes && opts.ReadOnly {
			a.key.SetEnabled(false)
		}
	}
	return m
}

// Init asks for the first snapshot, the choices and the terminal's background.
func (m *Model) Init() tea.Cmd {
	return tea.Batch(m.pollNow(), m.askChoices(), tea.RequestBackgroundColor)
}

// Update takes one message in and draws the frame that follows from it.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	m.now = m.fleet.Now()
	cmd := m.route(msg)
	watch := m.watchSelected()
	m.draw()
	return m, tea.Batch(cmd, watch, m.tick())
}

// View is the frame that the last message led to.
func (m *Model) View() tea.View {
	if m.drawn == "" {
		m.now = m.fleet.Now()
		m.draw()
	}
	v := tea.NewView(m.drawn)
	v.AltScreen = true
	v.ReportFocus = true
	v.WindowTitle = m.title()
	v.ProgramStatus = m.programStatus()
	if m.opts.Mouse {
		v.MouseMode = tea.MouseModeCellMotion
	}
	return v
}

// route hands a message to whom it concerns.
func (m *Model) route(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.BackgroundColorMsg:
		m.restyle(msg.IsDark(), m.colour) // unless the operator has chosen
	case tea.ColorProfileMsg:
		m.restyle(m.dark, !m.opts.NoColor && msg.Profile > colorprofile.ASCII)
	case tea.FocusMsg:
		m.focused = true
	case tea.BlurMsg:
		m.focused = false
	case tea.ResumeMsg:
		return m.refresh()
	case tea.KeyPressMsg:
		return m.press(msg)
	case tea.PasteMsg:
		return m.paste(msg)
	case snapshotMsg:
		return m.gotSnapshot(msg)
	case screenDueMsg:
		return m.screenDue(msg)
	case screenMsg:
		return m.gotScreen(msg)
	case choicesMsg:
		m.gotChoices(msg)
	case tickMsg:
		m.ticking = false
	case expireMsg:
		m.expire(msg)
	case lockMsg:
		return m.gotLock(msg)
	case endedMsg:
		return m.ended(msg)
	case planMsg:
		m.gotPlan(msg)
	case settledMsg:
		return m.gotSettled(msg)
	case backMsg:
		return m.backFrom(msg)
	case pageMsg:
		return m.gotPage(msg)
	case pageDueMsg:
		return m.pageDue(msg)
	case editedMsg:
		return m.gotEdited(msg)
	case tea.MouseMsg:
		return m.mouse(msg)
	}
	return nil
}

// press takes a key: a dialog's first, then the filter's, then the console's.
func (m *Model) press(msg tea.KeyPressMsg) tea.Cmd {
	switch {
	case key.Matches(msg, m.keys.ForceQuit):
		return tea.Quit
	case key.Matches(msg, m.keys.Suspend):
		return m.suspend()
	}
	m.dismiss()
	switch {
	case m.held.swallows(m.now.Mono):
		return nil
	case m.tooSmall():
		// What cannot be seen must not be acted on.
		if key.Matches(msg, m.keys.Quit) {
			return tea.Quit
		}
		return nil
	case m.dialog != nil:
		return m.dialog.update(m, msg)
	case m.typing:
		m.typeFilter(msg)
		return nil
	}
	return m.command(msg)
}

// paste goes to whoever takes text. Elsewhere it would run as commands, so it is dropped.
func (m *Model) paste(msg tea.PasteMsg) tea.Cmd {
	switch {
	case m.dialog != nil && m.dialog.takesText():
		return m.dialog.update(m, msg)
	case m.dialog == nil && m.typing:
		m.typeFilter(msg)
		return nil
	}
	return m.say(levelInfo, "paste ignored: nothing here takes text", "")
}

func (m *Model) tooSmall() bool { return m.width < minWidth || m.height < minHeight }

// restyle takes on the terminal's background and colours, unless the operator has set a theme.
func (m *Model) restyle(dark, colour bool) {
	m.styles = newStyles(m.opts.Theme, dark, colour)
}

// next is a number that was not given out before.
func (m *Model) next() uint64 {
	m.serial++
	return m.serial
}
