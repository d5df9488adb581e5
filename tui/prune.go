package tui

import (
	"context"
	"fmt"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"fleetdeck/fleet"
)

// pruneDialog shows what a prune would drop and why, and asks. What is really dropped is decided anew under the lock.
type pruneDialog struct {
	id     uint64
	plan   *fleet.PruneReport
	err    error
	cancel context.CancelFunc
	grace  grace
	scroll scroller
	line   string // the command that does the same
}

type planMsg struct {
	id   uint64
	plan fleet.PruneReport
	err  error
}

// askPrune asks what a prune would drop.
func (m *Model) askPrune() tea.Cmd {
	ctx, cancel := context.WithCancel(m.ctx)
	f := m.fleet
	d := &pruneDialog{id: m.next(), cancel: cancel, line: f.CommandLine("prune")}
	m.dialog = d
	return func() tea.Msg {
		defer cancel()
		p, err := f.PrunePlan(ctx)
		return planMsg{d.id, p, err}
	}
}

func (m *Model) gotPlan(msg planMsg) {
	d, ok := m.dialog.(*pruneDialog)
	if !ok || d.id != msg.id {
		return
	}
	d.err = msg.err
	if msg.err == nil {
		d.plan = &msg.plan
	}
	d.grace.begin(m.now.Mono)
}

func (d *pruneDialog) ready() bool     { return d.plan != nil && len(d.plan.Pruned) > 0 }
func (d *pruneDialog) takesText() bool { return false }
func (d *pruneDialog) dangerous() bool { return d.ready() }

func (d *pruneDialog) title() string {
	if d.ready() {
		return "Prune " + plural(len(d.plan.Pruned), "reservation?", "reservations?")
	}
	return "Prune"
}

func (d *pruneDialog) keys() []key.Binding {
	if d.ready() {
		return []key.Binding{yesKey("prune"), keyNo, keyCopyLine}
	}
	return []key.Binding{keyClose}
}

func (d *pruneDialog) lines(m *Model, w, h int) []string {
	var out []string
	switch {
	case d.err != nil:
		for _, l := range wrap(d.err.Error(), w) {
			out = append(out, m.danger.of(l))
		}
		return out
	case d.plan == nil:
		return []string{m.faint.of("looking at the reservation file…")}
	case len(d.plan.Pruned) == 0 && d.plan.Kept == 0:
		return []string{"There is nothing to prune: no reservation stands."}
	case len(d.plan.Pruned) == 0:
		return []string{"Nothing may be dropped: every entry still holds its tree.", m.faint.of(plural(d.plan.Kept, "entry stays", "entries stay"))}
	}
	for _, p := range d.plan.Pruned {
		v := m.verdict(p.Reason)
		why := m.why(p)
		room := max(w-12-len([]rune(why))-1, 10)
		out = append(out, v.paint.of(v.glyph+" "+cell(v.word, 8))+" "+fit(tail(m.short(p.Tree), min(room, w-11)), room)+m.faint.of(" "+why))
	}
	tail := []string{"", m.faint.of(cut(fmt.Sprintf("%s. Each is looked at again under the lock.", plural(d.plan.Kept, "entry stays", "entries stay")), w))}
	if h >= 8 {
		tail = append(tail, m.faint.of(cut("The same by hand: "+d.line, w)))
	}
	room := max(h-len(tail), 1)
	if len(out) > room {
		top := d.scroll.window(len(out), max(room-1, 1))
		out = append(out[top:min(top+max(room-1, 1), len(out))], m.faint.of(fmt.Sprintf("%d to %d of %d", top+1, min(top+room-1, len(out)), len(out))))
	}
	return append(out, tail...)
}

// why says why an entry may be dropped, with ages.
func (m *Model) why(p fleet.Pruned) string {
	e := m.ix.entry[p.Tree]
	if e == nil || e.ID != p.ID {
		return string(p.Reason)
	}
	switch p.Reason {
	case fleet.VerdictListed:
		return "its worker is a member"
	case fleet.VerdictExpired, fleet.VerdictInvalid:
		if over := -e.Deadline.Remaining(m.now); over > 0 {
			return "its grace ran out " + ago(over)
		}
	}
	return string(p.Reason)
}

// ago is how long something is past, to the minute where it is long.
func ago(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%d s ago", int(d.Seconds()))
	}
	return span(d) + " ago"
}

func (d *pruneDialog) update(m *Model, msg tea.Msg) tea.Cmd {
	k, ok := msg.(tea.KeyPressMsg)
	if !ok {
		return nil
	}
	yes := yesKey("prune")
	switch {
	case key.Matches(k, m.keys.Down):
		d.scroll.step(1)
	case key.Matches(k, m.keys.Up):
		d.scroll.step(-1)
	case key.Matches(k, m.keys.Back):
		m.close(d)
	case d.grace.swallows(m.now.Mono):
	case d.ready() && key.Matches(k, keyCopyLine):
		return m.copyText("the command", d.line)
	case d.ready() && key.Matches(k, yes):
		m.close(d)
		return m.prune(len(d.plan.Pruned))
	case key.Matches(k, keyNo), !d.ready() && key.Matches(k, keyClose):
		m.close(d)
	}
	return nil
}

func (m *Model) close(d *pruneDialog) {
	d.cancel()
	m.dialog = nil
}

// prune drops what may be dropped, and says where that differs from what was shown.
func (m *Model) prune(planned int) tea.Cmd {
	f := m.fleet
	return m.start("prune", "", func(ctx context.Context) end {
		r, err := f.Prune(ctx)
		switch {
		case err != nil:
			return failed("prune", err)
		case r.Lock == "busy":
			return end{level: levelAlarm, text: "prune: the admission lock stayed busy: nothing was changed", hint: "try again; an unpruned file costs nothing"}
		}
		text := "pruned " + plural(len(r.Pruned), "reservation", "reservations") + ", " + fmt.Sprintf("%d kept", r.Kept)
		if n := len(r.Pruned); n != planned {
			text += fmt.Sprintf(" (%d were shown: the file had changed meanwhile)", planned)
		}
		return end{level: levelInfo, text: text}
	})
}
