package tui

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"fleetdeck/fleet"
)

// messageDialog types a line to members. As an answer it shows what the one member asks, and sends a digit at once.
type messageDialog struct {
	to     []fleet.Member
	input  editor
	answer bool
	menus  bool // the screen shows a numbered menu, as drawn last
}

// askMessage asks what to tell the chosen members.
func (m *Model) askMessage() tea.Cmd {
	xs := m.chosenMembers()
	if len(xs) == 0 {
		return m.sayNobody("tell")
	}
	d := &messageDialog{input: editor{hint: "typed into its terminal, with enter"}}
	for _, x := range xs {
		d.to = append(d.to, *x)
	}
	m.dialog = d
	return nil
}

// askAnswer shows what the selected member waits for, and asks for an answer. Where it does not wait, it goes to the next that does.
func (m *Model) askAnswer() tea.Cmd {
	x := m.selectedMember()
	var cmd tea.Cmd
	if x == nil || x.State != fleet.StateWaiting {
		if cmd = m.nextWaiting(); m.ix.waiting == 0 {
			return cmd
		}
		x = m.selectedMember()
	}
	if x == nil || x.State != fleet.StateWaiting {
		return cmd
	}
	d := &messageDialog{to: []fleet.Member{*x}, answer: true, input: editor{hint: "typed into its terminal, with enter"}}
	d.menus = d.menu(m)
	m.dialog = d
	return cmd
}

func (m *Model) sayNobody(what string) tea.Cmd {
	text, hint := m.nobody(what)
	return m.say(levelInfo, text, hint)
}

func (d *messageDialog) title() string {
	if d.answer {
		return "Answer"
	}
	return "Message"
}

func (d *messageDialog) keys() []key.Binding {
	switch {
	case d.menus:
		return []key.Binding{keySend, bind("1…9", "choose at once", "1"), bind("ctrl+o", "attach", "ctrl+o"), keyCancel}
	case d.answer:
		return []key.Binding{keySend, bind("ctrl+o", "attach", "ctrl+o"), keyCancel}
	}
	return []key.Binding{keySend, keyCancel}
}

func (d *messageDialog) takesText() bool { return true }

func (d *messageDialog) lines(m *Model, w, h int) []string {
	to := d.to[0]
	d.menus = d.menu(m)
	var out []string
	if len(d.to) == 1 {
		state := m.member(to.State)
		out = append(out, m.strong.of(cut("to "+to.Role+" in "+m.short(to.Tree), w-12))+"  "+state.String())
		if to.StateMessage != "" {
			for _, l := range wrap("“"+to.StateMessage+"”", w) {
				out = append(out, m.faint.of(l))
			}
		}
	} else {
		out = append(out, m.strong.of(plural(len(d.to), "member", "members")))
		out = append(out, m.targets(d.names(m), w, min(6, max(h-6, 1)))...)
	}
	out = append(out, "")
	if d.answer && m.screen.member == to.ID && m.screen.seen {
		lines, n := screenText(m.screen.screen)
		show := min(max(h-len(out)-3, 0), n, 14)
		for _, l := range lines[n-show : n] {
			out = append(out, m.screenLine(l, w))
		}
		if show > 0 {
			out = append(out, m.rule.of(strings.Repeat("┄", w)))
		}
	}
	for i, l := range d.input.view(m, w-2, 1+len(d.input.value())/max(w-2, 1), true) {
		head := "  "
		if i == 0 {
			head = m.accent.of("› ")
		}
		out = append(out, head+l)
	}
	return out
}

// choiceLine is a line of a numbered menu.
var choiceLine = regexp.MustCompile(`^\W*([1-9])[.)] `)

// menu reports whether the member's screen shows a numbered menu, which takes a digit without enter.
func (d *messageDialog) menu(m *Model) bool {
	if !d.answer || m.screen.member != d.to[0].ID || !m.screen.seen {
		return false
	}
	seen := map[string]bool{}
	for _, l := range m.screen.screen.Lines {
		if c := choiceLine.FindStringSubmatch(l); c != nil {
			seen[c[1]] = true
		}
	}
	return seen["1"] && seen["2"]
}

func (d *messageDialog) names(m *Model) []string {
	var out []string
	for _, x := range d.to {
		out = append(out, x.Role+" in "+m.short(x.Tree))
	}
	return out
}

// targets is a list of names, with how many more there are.
func (m *Model) targets(names []string, w, h int) []string {
	var out []string
	for i, n := range names {
		if i == h-1 && len(names) > h {
			return append(out, m.faint.of(fmt.Sprintf("  and %d more", len(names)-i)))
		}
		out = append(out, "  "+cut(n, w-2))
	}
	return out
}

func (d *messageDialog) update(m *Model, msg tea.Msg) tea.Cmd {
	k, ok := msg.(tea.KeyPressMsg)
	switch {
	case !ok:
	case key.Matches(k, keyCancel):
		m.dialog = nil
		return nil
	case d.answer && key.Matches(k, keyEditor):
		m.dialog = nil
		return m.attachTo(&d.to[0])
	case d.menu(m) && d.input.value() == "" && len(k.Text) == 1 && k.Text >= "1" && k.Text <= "9":
		m.dialog = nil
		m.held.begin(m.now.Mono) // more digits would be commands by now
		return d.send(m, k.Text, false)
	case key.Matches(k, keySend):
		text := d.input.value()
		if strings.TrimSpace(text) == "" {
			return nil
		}
		m.dialog = nil
		return d.send(m, text, true)
	}
	d.input.update(msg)
	return nil
}

// send types the text to every member that was named.
func (d *messageDialog) send(m *Model, text string, enter bool) tea.Cmd {
	f, to := m.fleet, d.to
	what, done := "message to "+clean(to[0].ID), "told "+to[0].Role+" in "+m.short(to[0].Tree)+": "+text
	if !enter {
		done += " (without enter)"
	}
	if len(to) > 1 {
		what = "message to " + plural(len(to), "member", "members")
		done = "told " + plural(len(to), "member", "members") + ": " + text
	}
	return m.start(what, to[0].Tree, func(ctx context.Context) end {
		return overAll(ctx, to, done, what,
			func(x fleet.Member) string { return x.Role + " in " + x.Tree },
			func(ctx context.Context, x fleet.Member) error { return f.Send(ctx, x.ID, text, enter) })
	})
}

// overAll does something for each of several targets. One that fails keeps none of the others from being tried.
func overAll[T any](ctx context.Context, targets []T, done, what string, name func(T) string, do func(context.Context, T) error) end {
	var failures []string
	var first error
	for _, t := range targets {
		if err := do(ctx, t); err != nil {
			if first == nil {
				first = err
			}
			failures = append(failures, clean(name(t)))
		}
	}
	switch {
	case first == nil:
		return end{level: levelInfo, text: done}
	case len(targets) == 1:
		return failed(what, first)
	}
	e := failed(fmt.Sprintf("%s: %d of %d failed (%s)", what, len(failures), len(targets), strings.Join(failures, ", ")), first)
	return e
}
