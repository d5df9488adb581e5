package tui

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"fleetdeck/fleet"
)

// Levels of an event.
const (
	levelInfo  = "info"
	levelWarn  = "warn"
	levelAlarm = "alarm"
)

// mostEvents bounds the events that are listed.
const mostEvents = 2000

// deed is a line of the event list: an event of the fleet, or something that this console did or was told.
type deed struct {
	fleet.Event
	own bool
}

func (d *deed) key() string {
	if d.own {
		return "console/" + strconv.FormatUint(d.Seq, 10)
	}
	return "fleet/" + strconv.FormatUint(d.Seq, 10)
}

func (d *deed) text() string {
	return strings.Join([]string{d.Level, d.Kind, d.Tree, d.Member, d.Message}, " ")
}

// deeds merges the fleet's events, oldest first, with the console's own, newest first.
func deeds(events []fleet.Event, own []*deed) []*deed {
	if n := len(events) - mostEvents; n > 0 {
		events = events[n:]
	}
	all := make([]deed, len(events))
	out := make([]*deed, 0, len(events)+len(own))
	for i := range events {
		all[i] = deed{Event: events[len(events)-1-i]}
		out = append(out, &all[i])
	}
	out = append(out, own...)
	slices.SortStableFunc(out, func(a, b *deed) int { return b.Time.Compare(a.Time) })
	return out
}

// eventKind is the list of events, the newest first.
func (m *Model) eventKind() kind[*deed] {
	level := func(d *deed) string { return d.Level }
	what := func(d *deed) string { return d.Kind }
	style := func(d *deed) paint {
		if d.Level == levelInfo || d.Level == "" {
			return ""
		}
		return m.level(d.Level).paint
	}
	return kind[*deed]{
		title: "Events",
		key:   (*deed).key,
		text:  (*deed).text,
		look:  func(d *deed) look { return m.level(d.Level) },
		fields: map[string]func(*deed) string{
			"level": level, "event": what, "tree": func(d *deed) string { return path.Base(d.Tree) }, "member": func(d *deed) string { return d.Member },
		},
		columns: []column[*deed]{
			{title: "TIME", w: 8, by: func(a, b *deed) int { return a.Time.Compare(b.Time) }, cell: func(d *deed, _ int) (string, paint) { return d.Time.Local().Format("15:04:05"), m.faint }},
			{title: "EVENT", w: 13, from: 70, by: ordered(what), cell: func(d *deed, _ int) (string, paint) { return d.Kind, style(d) }},
			{title: "TREE", w: 14, grow: 1, most: 40, from: 90, end: true, by: ordered(func(d *deed) string { return d.Tree }), cell: func(d *deed, _ int) (string, paint) { return m.inList(d.Tree), m.faint }},
			{title: "MESSAGE", w: 20, grow: 3, cell: func(d *deed, w int) (string, paint) {
				text := d.Message
				if text == "" {
					text = d.Kind
				}
				if d.Tree != "" && !m.events.draws("TREE") {
					text = m.named(d.Tree) + ": " + text
				}
				return text, style(d)
			}},
		},
		groups: []grouping[*deed]{{name: "tree", of: func(d *deed) string { return m.short(d.Tree) }}, {name: "event", of: what}, {name: "level", of: level}},
		fault:  func(d *deed) bool { return d.Level == levelWarn || d.Level == levelAlarm },
		empty:  func() [2]string { return [2]string{"nothing has happened yet", ""} },
	}
}

// eventDetail is an event with all of its text.
func (m *Model) eventDetail(d *deed, w int) []string {
	out := []string{" " + m.level(d.Level).String(), ""}
	out = append(out, m.fact("at", d.Time.Local().Format("2006-01-02 15:04:05"), w), m.fact("event", d.Kind, w))
	if d.Tree != "" {
		out = append(out, m.fact("tree", fleet.ShortPath(d.Tree, m.opts.Home), w))
	}
	if d.Member != "" {
		out = append(out, m.fact("member", d.Member, w))
	}
	out = append(out, "")
	for _, l := range wrapText(d.Message, w-2) {
		out = append(out, " "+l)
	}
	return out
}
