package tui

import (
	"fmt"
	"time"
)

// dataAge is the age of the oldest of what is shown. A daemon that is down has a bar of its own.
func (m *Model) dataAge() time.Duration {
	a := m.baseAge()
	if m.ix.Daemon.Running {
		a = max(a, age(m.now, m.ix.Daemon.AnsweredAt))
	}
	return a
}

// alertLines are the bars over the lists: what is wrong, and what to do about it.
func (m *Model) alertLines(w int) []string {
	var out []string
	bar := func(p paint, title, text string) {
		s := " " + title
		if text != "" {
			s += " · " + clean(text)
		}
		out = append(out, p.of(fit(s, w)))
	}
	if err := m.polling.err; err != nil {
		bar(m.dangerBar, "NO NEWS OF THE FLEET", "what is shown may be old · "+err.Error())
	}
	if !m.ix.loaded {
		return out
	}
	if d := m.ix.Daemon; !d.Running {
		title, why := "DAEMON DOWN", "dispatches are refused · `fleetdeck up` starts it"
		if d.Pid != 0 {
			title, why = "DAEMON DOES NOT ANSWER", fmt.Sprintf("dispatches are refused · pid %d hangs, or is stopped", d.Pid)
		}
		if a := age(m.now, d.AnsweredAt); !d.AnsweredAt.IsZero() && a > fresh {
			m.counting = true
			why += " · agents are shown as they were " + seconds(a) + " ago"
		}
		if d.Error != "" {
			why += " · " + d.Error
		}
		bar(m.dangerBar, title, why)
	}
	if m.many() {
		m.clusterAlerts(bar)
	} else if e := m.ix.File.Error; e != "" {
		bar(m.dangerBar, "RESERVATION FILE BROKEN", "dispatches are refused · "+e+" · `fleetdeck doctor` says how to mend it")
	}
	if m.ix.mismatched > 0 {
		bar(m.dangerBar, "CHARTER MISMATCH", plural(m.ix.mismatched, "member holds", "members hold")+" a charter of a role that is not theirs · 2 shows which")
	}
	if n := m.ix.outdated; n > 0 {
		bar(m.warnBar, "CHARTER OUTDATED", plural(n, "member works", "members work")+" on an older charter than its role has now · 2 shows which · a restart hands the new one over")
	}
	if k := m.ix.Keeper; k.Error != "" {
		bar(m.dangerBar, "KEEPER UNKNOWN", k.Error)
	} else if k.Broken > 0 {
		bar(m.dangerBar, "KEEPER GAVE UP", plural(k.Broken, "tree is", "trees are")+" not staffed any more · `fleetdeck keep --status` says why, `fleetdeck keep --reset TREE` tries again")
	}
	if a := m.dataAge(); a > stale {
		m.counting = true
		bar(m.warnBar, "STALE", "what is shown is "+seconds(a)+" old · r asks again")
	}
	if h := m.ix.Lock.Holder; h != nil && h.Pid != m.pid && age(m.now, h.Since) > longHeld {
		waits := " · dispatches wait for it"
		if m.many() {
			waits = "" // they are etcd's to decide
		}
		bar(m.warnBar, "LOCK HELD", fmt.Sprintf("by %s for %s", holder(h), seconds(age(m.now, h.Since)))+waits)
	}
	return out
}
