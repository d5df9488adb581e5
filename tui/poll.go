package tui

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"fleetdeck/fleet"
)

const (
	// pause is the least time between two frames' worth of news: more often than the screen is drawn is work for nothing.
	pause = 50 * time.Millisecond
	// heartbeat is how long a wait for news lasts until the age of the data is looked at again.
	heartbeat = 5 * time.Second
	// retry is the time between two tries of something that failed.
	retry = time.Second
	// linger is how long a row must stay selected until its screen is asked for, so that a held key asks for none.
	linger = 80 * time.Millisecond
)

// poll is the one standing question for the next snapshot. Its generation tells answers to an abandoned question from
// those to the present one.
type poll struct {
	gen    uint64
	cancel context.CancelFunc
	err    error // why there is no news
}

// snapshotMsg brings a snapshot that was made ready on its way, so that no key waits for that.
type snapshotMsg struct {
	gen uint64
	ix  index
	err error
}

// pollNow abandons the standing question and asks what is known now.
func (m *Model) pollNow() tea.Cmd {
	if m.polling.cancel != nil {
		m.polling.cancel()
	}
	ctx, cancel := context.WithCancel(m.ctx)
	m.polling.gen, m.polling.cancel = m.next(), cancel
	return m.askSnapshot(ctx, 0, 0)
}

// askSnapshot waits for d and then for a snapshot newer than rev, or for the heartbeat.
func (m *Model) askSnapshot(ctx context.Context, d time.Duration, rev uint64) tea.Cmd {
	f, gen := m.fleet, m.polling.gen
	return func() tea.Msg {
		if !sleep(ctx, d) {
			return nil
		}
		s, err := snapshotWithin(ctx, f, rev)
		if err != nil && rev != 0 && ctx.Err() == nil {
			// Nothing new is no error, but what is known may have been confirmed meanwhile.
			s, err = snapshotWithin(ctx, f, 0)
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return snapshotMsg{gen: gen, err: err}
		}
		return snapshotMsg{gen: gen, ix: newIndex(s)}
	}
}

func snapshotWithin(ctx context.Context, f Fleet, rev uint64) (fleet.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, heartbeat)
	defer cancel()
	return f.Snapshot(ctx, rev)
}

// sleep waits for d, and reports false where ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (m *Model) gotSnapshot(msg snapshotMsg) tea.Cmd {
	if msg.gen != m.polling.gen {
		return nil
	}
	if m.polling.err = msg.err; msg.err != nil {
		return m.rearm(retry, 0)
	}
	alarms := m.newAlarms(msg.ix.Events)
	before := m.ix
	m.ix = msg.ix
	m.confirm()
	m.setAll()
	next := pause
	if msg.ix.Rev == 0 {
		next = retry // nothing to wait for the successor of
	}
	return tea.Batch(m.rearm(next, msg.ix.Rev), alarms, m.notify(before))
}

// newAlarms says what has gone wrong since the last snapshot. What had gone wrong before the first is in the event list.
func (m *Model) newAlarms(events []fleet.Event) tea.Cmd {
	if len(events) == 0 {
		return nil
	}
	known := m.heard
	m.heard = max(known, events[len(events)-1].Seq)
	if !m.ix.loaded {
		return nil
	}
	var cmds []tea.Cmd
	for _, e := range events {
		if e.Seq > known && e.Level == levelAlarm {
			text := e.Message
			if e.Tree != "" {
				text = m.short(e.Tree) + ": " + text
			}
			cmds = append(cmds, m.say(levelAlarm, text, ""))
		}
	}
	return tea.Batch(cmds...)
}

// rearm asks the next question of the same generation.
func (m *Model) rearm(d time.Duration, rev uint64) tea.Cmd {
	if m.polling.cancel != nil {
		m.polling.cancel()
	}
	ctx, cancel := context.WithCancel(m.ctx)
	m.polling.cancel = cancel
	return m.askSnapshot(ctx, d, rev)
}

// refresh reads everything anew.
func (m *Model) refresh() tea.Cmd {
	m.screen.again = true
	m.fleet.Look(m.selectedTree())
	return tea.Batch(m.pollNow(), m.askChoices())
}

type choicesMsg struct{ fleet.Choices }

func (m *Model) askChoices() tea.Cmd {
	f := m.fleet
	return func() tea.Msg { return choicesMsg{f.Choices()} }
}

func (m *Model) gotChoices(msg choicesMsg) {
	m.choices = msg.Choices
	if d, ok := m.dialog.(*spawnDialog); ok {
		d.offer(m)
	}
}

// watch is the standing question for the screen of the one member that is looked at.
type watch struct {
	member string
	gen    uint64
	cancel context.CancelFunc
	screen fleet.Screen
	seen   bool
	err    error
	again  bool // ask anew although the member is the same
}

type screenDueMsg struct{ gen uint64 }

type screenMsg struct {
	gen    uint64
	screen fleet.Screen
	err    error
}

// watchSelected turns to the screen of the member that the detail shows.
func (m *Model) watchSelected() tea.Cmd {
	id := m.watched()
	if id == m.screen.member && !m.screen.again {
		return nil
	}
	if m.screen.cancel != nil {
		m.screen.cancel()
	}
	same := id == m.screen.member
	old := m.screen
	m.screen = watch{member: id, gen: m.next()}
	if same {
		m.screen.screen, m.screen.seen = old.screen, old.seen
	} else {
		m.detail = scroller{}
	}
	if id == "" {
		return nil
	}
	gen := m.screen.gen
	return tea.Tick(linger, func(time.Time) tea.Msg { return screenDueMsg{gen} })
}

// watched is the member whose screen is on the console's, or empty.
func (m *Model) watched() string {
	if m.frame().detail.empty() {
		return ""
	}
	switch m.view {
	case viewTrees:
		if t, ok := m.trees.current(); ok && m.ix.member[t.Member] != nil && m.ix.member[t.Member].State != fleet.StateLost {
			return t.Member
		}
	case viewMembers:
		if x, ok := m.members.current(); ok && x.State != fleet.StateLost {
			return x.ID
		}
	}
	return ""
}

func (m *Model) screenDue(msg screenDueMsg) tea.Cmd {
	if msg.gen != m.screen.gen {
		return nil
	}
	ctx, cancel := context.WithCancel(m.ctx)
	m.screen.cancel = cancel
	return m.askScreen(ctx, 0)
}

func (m *Model) askScreen(ctx context.Context, rev uint64) tea.Cmd {
	f, gen, id := m.fleet, m.screen.gen, m.screen.member
	return func() tea.Msg {
		if rev > 0 && !sleep(ctx, pause) {
			return nil
		}
		s, err := f.Screen(ctx, id, rev)
		if ctx.Err() != nil {
			return nil
		}
		return screenMsg{gen, s, err}
	}
}

func (m *Model) gotScreen(msg screenMsg) tea.Cmd {
	if msg.gen != m.screen.gen {
		return nil
	}
	if m.screen.err = msg.err; msg.err != nil {
		if x := m.ix.member[m.screen.member]; x == nil || !x.Alive() {
			return nil // there is nothing to come
		}
		gen := msg.gen
		return tea.Tick(retry, func(time.Time) tea.Msg { return screenDueMsg{gen} })
	}
	m.screen.screen, m.screen.seen = msg.screen, true
	if m.screen.cancel != nil {
		m.screen.cancel()
	}
	ctx, cancel := context.WithCancel(m.ctx)
	m.screen.cancel = cancel
	return m.askScreen(ctx, msg.screen.Rev)
}

type tickMsg struct{}

// tick arms the one-second clock while the frame shows something that changes by itself and somebody looks.
func (m *Model) tick() tea.Cmd {
	if !m.counting || !m.focused || m.ticking {
		return nil
	}
	m.ticking = true
	return tea.Tick(time.Second, func(time.Time) tea.Msg { return tickMsg{} })
}
