package tui

import (
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"fleetdeck/fleet"
	"fleetdeck/fleet/plain"
)

var everySize = flag.Bool("every-size", false, "try each dialog on every size, not on a part of them")

var update = flag.Bool("update", false, "rewrite the golden frames")

// still is a console at one moment, without a loop: commands are made and not run.
func still(s fleet.Snapshot, w, h int, opts Options) *Model {
	m := New(newFake(s), opts)
	m.Init()
	m.Update(tea.WindowSizeMsg{Width: w, Height: h})
	m.choices = m.fleet.Choices()
	m.Update(snapshotMsg{gen: m.polling.gen, ix: newIndex(s)})
	m.Update(screenMsg{gen: m.screen.gen, screen: apiScreen()})
	return m
}

func typed(m *Model, keys ...string) *Model {
	for _, k := range keys {
		m.Update(keyOf(k))
	}
	return m
}

// dialogs opens each dialog.
var dialogs = []struct {
	name string
	open func(m *Model)
}{
	{"none", func(*Model) {}},
	{"help", func(m *Model) { typed(m, "?") }},
	{"stop", func(m *Model) { typed(m, "X") }},
	{"message", func(m *Model) { typed(m, "j", "m", "y", "e", "s") }},
	{"release", func(m *Model) { typed(m, "4", "R") }},
	{"spawn", func(m *Model) { typed(m, "j", "j", "s", "F", "i", "x", "alt+enter", "i", "t") }},
	{"spawn-tree", func(m *Model) { typed(m, "s", "o") }},
	{"spawn-also", func(m *Model) {
		typed(m, "j", "j", "s", "tab", "tab", "m", "o", "b", "enter", "o")
	}},
	{"spawn-beside", func(m *Model) { typed(m, "j", "j", "j", "j", "s") }},
	{"spawn-role", func(m *Model) { typed(m, "j", "j", "s", "shift+tab", "shift+tab", "right") }},
	{"prune", func(m *Model) {
		typed(m, "P")
		m.Update(planMsg{id: m.dialog.(*pruneDialog).id, plan: examplePlan()})
	}},
	{"prune-waiting", func(m *Model) { typed(m, "P") }},
	{"prune-failed", func(m *Model) {
		typed(m, "P")
		m.Update(planMsg{id: m.dialog.(*pruneDialog).id, err: errors.New("read /home/kim/.local/state/fleetdeck/reservations.json: permission denied")})
	}},
	{"prune-nothing", func(m *Model) {
		typed(m, "P")
		m.Update(planMsg{id: m.dialog.(*pruneDialog).id, plan: fleet.PruneReport{Kept: 2}})
	}},
	{"filter", func(m *Model) { typed(m, "/", "m", "a", "i", "n") }},
	{"palette", func(m *Model) { typed(m, ":", "s", "t", "o") }},
	{"answer", func(m *Model) { typed(m, "i", "y", "e", "s") }},
	{"queue-task", func(m *Model) { typed(m, "n", "F", "i", "x") }},
	{"spawn-many", func(m *Model) { typed(m, "j", "j", "space", "j", "j", "space", "s") }},
	{"stop-many", func(m *Model) { typed(m, "2", "*", "X") }},
	{"restart", func(m *Model) { typed(m, "T") }},
	{"unqueue", func(m *Model) { typed(m, "5", "D") }},
	{"refused", func(m *Model) {
		m.offerElse(&held{order: fleet.Order{Tree: home + "/src/web", Role: "dev", Profile: "claude"}, message: "~/src/web is reserved by reservation r6-01JEZZ of python3 dispatch.py (pid 5151), 27 s left"})
		m.Update(nil)
	}},
	{"diff", func(m *Model) {
		typed(m, "d")
		paged(m, pageMsg{text: exampleDiff})
	}},
	{"diff-failed", func(m *Model) {
		typed(m, "d")
		paged(m, pageMsg{err: errors.New("git diff: not a git repository")})
	}},
	{"explain", func(m *Model) {
		typed(m, "x")
		paged(m, pageMsg{text: strings.Repeat("It is occupied by dev 01JEABCD0001 since 05:28:00.\n", 80)})
	}},
	{"queue", func(m *Model) { typed(m, "5", "j") }},
	{"history", func(m *Model) { typed(m, "7") }},
	{"below", func(m *Model) { typed(m, "p", "p") }},
	{"closed", func(m *Model) { typed(m, "p", "p", "p") }},
	{"zoomed", func(m *Model) { typed(m, "tab", "z") }},
	{"grouped", func(m *Model) { typed(m, "b", "b", "b", "G") }},
	{"sorted", func(m *Model) { typed(m, ">", ">", "-") }},
	{"faults", func(m *Model) { typed(m, "f") }},
	{"marked", func(m *Model) { typed(m, "space", "space", "j") }},
	{"outdated", func(m *Model) {
		s := example(instant(0))
		s.Members[0].CharterOutdated, s.Keeper.Broken = true, 1
		m.Update(snapshotMsg{gen: m.polling.gen, ix: newIndex(s)})
		typed(m, "2")
	}},
	{"several", func(m *Model) { // an agent over three trees, from the second of them
		s := example(instant(0))
		s.Members[0].Also = []fleet.Tree{{Path: home + "/src/docs"}, {Path: home + "/src/mobile"}}
		for i := range s.Trees {
			s.Trees[i].Upstream, s.Trees[i].Ahead, s.Trees[i].Behind = "origin/"+s.Trees[i].Branch, i, i%3
		}
		for _, i := range []int{2, 5} {
			s.Trees[i].Occupancy, s.Trees[i].Member = fleet.Taken, s.Members[0].ID
		}
		m.Update(snapshotMsg{gen: m.polling.gen, ix: newIndex(s)})
		typed(m, "j", "j")
	}},
	{"members", func(m *Model) { typed(m, "2") }},
	{"slots", func(m *Model) { typed(m, "3") }},
	{"slot-reserved", func(m *Model) { typed(m, "3", "G") }},
	{"reservations", func(m *Model) { typed(m, "4") }},
	{"events", func(m *Model) { typed(m, "6") }},
	{"reserved", func(m *Model) { typed(m, "G", "k") }},
	{"trouble", func(m *Model) {
		s := example(instant(0))
		s.Daemon = fleet.DaemonInfo{Error: "dial /run/user/1000/fleetdeck/fleetd.sock: connection refused"}
		s.File.Error = "line 3: a string is not closed"
		s.Lock = fleet.LockInfo{State: "held", Holder: &fleet.LockHolder{Pid: 4242, Program: "python3 dispatch.py", Since: day.Add(-14 * time.Second)}}
		m.Update(snapshotMsg{gen: m.polling.gen, ix: newIndex(s)})
		m.record(end{level: levelAlarm, text: "refused: ~/src/api is occupied by 01JEABCD0001 since 06:28", hint: "send it a message, or choose another tree"}, "")
	}},
	{"cluster", func(m *Model) { manyHosts(m, nil) }},
	{"cluster-waiting", func(m *Model) { // the member of another host
		manyHosts(m, nil)
		m.trees.goTo(fleet.At("crane", home+"/src/web"))
		m.Update(nil)
	}},
	{"cluster-members", func(m *Model) { manyHosts(m, nil); typed(m, "2", "G", "k", "k") }},
	{"cluster-lost", func(m *Model) { manyHosts(m, nil); typed(m, "2", "/", "l", "o", "s", "t", "enter") }},
	{"cluster-slots", func(m *Model) { manyHosts(m, nil); typed(m, "3", "j") }},
	{"cluster-reservations", func(m *Model) { manyHosts(m, nil); typed(m, "4") }},
	{"cluster-help", func(m *Model) { manyHosts(m, nil); typed(m, "?") }},
	{"nodes", func(m *Model) { manyHosts(m, nil); typed(m, "8") }},
	{"node-lost", func(m *Model) { manyHosts(m, nil); typed(m, "8", "j") }},
	{"partition", func(m *Model) { manyHosts(m, partitioned) }},
	{"partition-nodes", func(m *Model) { manyHosts(m, partitioned); typed(m, "8") }},
	{"waiting-for-the-lock", func(m *Model) {
		typed(m, "j", "j", "s", "enter")
		m.Update(lockMsg{fleet.LockInfo{State: "held", Holder: &fleet.LockHolder{Pid: 4242, Program: "python3 dispatch.py", Since: day}}})
	}},
}

const exampleDiff = `diff --git a/importer/cursor.go b/importer/cursor.go
index 83db48f..bf269f4 100644
--- a/importer/cursor.go
+++ b/importer/cursor.go
@@ -10,7 +10,7 @@ func (c *Cursor) Next() int {
 	if c.done {
-		return c.last
+		return c.durable()
 	}
`

// looks are the ways in which a frame can be coloured.
var looks = []struct {
	name   string
	theme  string
	dark   bool
	colour bool
}{
	{"dark", "", true, true}, {"light", "", false, true}, {"nocolor", "", true, false}, {"colour-blind", "colour-blind", true, true},
}

// Every view and dialog has a frame in every look at every size. Their text stands in files that can be read; of their colours
// the sums are kept, since what they are can be seen in the few that stand in full.
func TestEveryFrameInEveryLookIsAsItWas(t *testing.T) {
	full(t)
	local := time.Local
	time.Local = time.UTC
	t.Cleanup(func() { time.Local = local })
	var sums strings.Builder
	for _, d := range dialogs {
		for _, size := range []struct{ w, h int }{{200, 60}, {120, 40}, {80, 24}, {40, 10}} {
			m := still(example(instant(0)), size.w, size.h, Options{Home: home})
			d.open(m)
			var texts []string
			for _, l := range looks {
				m.opts.Theme = l.theme
				m.restyle(l.dark, l.colour)
				m.Update(nil)
				frame := m.View().Content
				fmt.Fprintf(&sums, "%s %dx%d %s %x\n", d.name, size.w, size.h, l.name, sha256.Sum256([]byte(frame)))
				texts = append(texts, ansi.Strip(frame))
				if hasColour := coloured.MatchString(frame); hasColour != l.colour && (l.colour && size.h > 10 || !l.colour) {
					t.Errorf("%s at %dx%d, %s: coloured: %t", d.name, size.w, size.h, l.name, hasColour)
				}
			}
			for i, text := range texts {
				if text != texts[0] {
					t.Errorf("%s at %dx%d says something else in %s: a colour alone must not tell", d.name, size.w, size.h, looks[i].name)
				}
			}
		}
	}
	golden(t, "looks.sum", strings.TrimRight(sums.String(), "\n"))
}

// coloured finds a foreground or background colour.
var coloured = regexp.MustCompile(`\x1b\[(?:[0-9]+;)*(?:3[0-7]|4[0-7]|9[0-7]|10[0-7])(?:;[0-9]+)*m`)

// paged gives an open pager what it waits for.
func paged(m *Model, msg pageMsg) {
	if p, ok := m.dialog.(*pager); ok {
		msg.id = p.id
		m.Update(msg)
	}
}

func TestGoldenFrames(t *testing.T) {
	// Event times are shown in the operator's zone.
	local := time.Local
	time.Local = time.UTC
	t.Cleanup(func() { time.Local = local })

	sizes := []struct{ w, h int }{{200, 60}, {120, 40}, {80, 24}, {40, 10}}
	for _, size := range sizes {
		for _, d := range dialogs {
			t.Run(fmt.Sprintf("%s/%dx%d", d.name, size.w, size.h), func(t *testing.T) {
				m := still(example(instant(0)), size.w, size.h, Options{Home: home})
				d.open(m)
				golden(t, fmt.Sprintf("%s-%dx%d.txt", d.name, size.w, size.h), ansi.Strip(m.View().Content))
			})
		}
	}
	inFull := []struct {
		name string
		opts Options
		dark bool
	}{
		{"dark", Options{}, true}, {"light", Options{}, false}, {"nocolor", Options{NoColor: true}, true},
		{"colour-blind", Options{Config: Config{Theme: "colour-blind"}}, true}, {"plain", Options{Config: Config{Theme: "plain"}}, true},
	}
	for _, l := range inFull {
		for _, name := range []string{"none", "stop-many", "diff"} {
			t.Run(l.name+"/"+name, func(t *testing.T) {
				l.opts.Home = home
				m := still(example(instant(0)), 80, 24, l.opts)
				m.restyle(l.dark, !l.opts.NoColor)
				for _, d := range dialogs {
					if d.name == name {
						d.open(m)
					}
				}
				m.Update(nil)
				// Escapes written out, so that the file can be read and compared.
				golden(t, l.name+"-"+name+"-80x24.ansi", strings.ReplaceAll(m.View().Content, "\x1b", `\e`))
			})
		}
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	got += "\n"
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; run the test with -update to make it", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// fits fails where a frame is wider or taller than the screen.
func fits(t *testing.T, m *Model, w, h int, what string) {
	t.Helper()
	frame := m.View().Content
	if w <= 0 || h <= 0 {
		if frame != "" {
			t.Fatalf("%s: a frame on a screen without cells", what)
		}
		return
	}
	lines := strings.Split(frame, "\n")
	if len(lines) > h {
		t.Fatalf("%s: %d lines on %d", what, len(lines), h)
	}
	for y, l := range lines {
		if n := ansi.StringWidth(l); n > w {
			t.Fatalf("%s: line %d is %d cells wide:\n%s", what, y, n, ansi.Strip(l))
		}
	}
}

func TestNoFrameIsLargerThanTheScreen(t *testing.T) {
	full(t)
	snaps := map[string]fleet.Snapshot{"example": example(instant(0)), "hostile": hostile(), "empty": {At: instant(0)}}
	for name, s := range snaps {
		for i, d := range dialogs {
			t.Run(name+"/"+d.name, func(t *testing.T) {
				m := still(s, 120, 40, Options{Home: home})
				d.open(m)
				part := 48
				if name != "example" {
					part = 192
				}
				if raceDetector {
					part *= 8 // one goroutine draws: it has nothing to find here, and draws ten times slower
				}
				for w := 0; w <= 140; w++ {
					for h := 0; h <= 50; h++ {
						// Each dialog takes its own part of the sizes, and all that are about as small as can be.
						if !*everySize && (w+5*h+i)%part != 0 && (raceDetector || w < minWidth-1 || w > minWidth || h > 20) {
							continue
						}
						m.Update(tea.WindowSizeMsg{Width: w, Height: h})
						fits(t, m, w, h, fmt.Sprintf("%dx%d", w, h))
					}
				}
			})
		}
	}
}

// evil is text that would do harm if it were drawn as it is.
const evil = "a\x1b[2J\x1b]0;owned\x07\x1b[31mred\u202eevil\u200b\u2066\r\nb\tc\x9b1mä漢字👩‍👩‍👧🇩🇪e\u0301\u0301\u0301\u0301\u0301\u0301\x00\xff" + "\x1bP1;2|x\x1b\\"

// hostile is a fleet of many hosts whose every text is evil.
func hostile() fleet.Snapshot {
	s := inCluster(example(instant(0)))
	long := evil + strings.Repeat("漢x", 5000)
	for i := range s.Trees {
		s.Trees[i].Tree += "/" + long
		s.Trees[i].Branch = long
	}
	for i := range s.Members {
		m := &s.Members[i]
		m.ID += evil
		m.Tree, m.Role, m.Profile, m.Slot, m.StateMessage, m.Task = m.Tree+"/"+long, evil, evil, evil, long, long
		m.RequestedRole, m.CharterMismatch = evil, true
	}
	for i := range s.Trees {
		if s.Trees[i].Member != "" {
			s.Trees[i].Member += evil
		}
	}
	s.Members[1].State = fleet.State(evil)
	s.Trees[2].Occupancy = fleet.Occupied(evil)
	for i := range s.Launches {
		l := &s.Launches[i]
		l.Step, l.Role, l.Profile, l.Slot = evil, evil, evil, evil
	}
	for i := range s.Reservations {
		r := &s.Reservations[i]
		r.Tree += "/" + long
		r.ID, r.Role, r.Profile, r.Slot = evil, evil, evil, evil
		r.Dispatcher.Program, r.Dispatcher.Host = long, evil
	}
	s.Reservations[2].Verdict = fleet.Verdict(evil)
	for i := range s.Events {
		e := &s.Events[i]
		e.Kind, e.Message, e.Tree = evil, long, s.Trees[i].Tree
	}
	for i := range s.Queue {
		q := &s.Queue[i]
		q.Tree, q.Role, q.Profile, q.Task, q.Error, q.State = s.Trees[i].Tree, evil, evil, long, long, evil
	}
	for i := range s.History {
		d := &s.History[i]
		d.What, d.Command, d.Message, d.Outcome, d.Tree, d.Code = evil, long, long, evil, s.Trees[i].Tree, fleet.Code(evil)
		d.By.Program = long
	}
	for i := range s.Slots {
		x := &s.Slots[i]
		x.Name, x.Role, x.Profile, x.Tree = x.Name+evil, evil, evil, s.Trees[i].Tree
	}
	for i := range s.Trees {
		s.Trees[i].Foreign.Agent = evil
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		n.Name, n.Host, n.Version, n.Members = n.Name+evil, long, evil, slices.Clone(n.Members)
		for j := range n.Members {
			n.Members[j].Role, n.Members[j].Tree = evil, long
		}
		for j := range n.Held {
			n.Held[j].Role, n.Held[j].Tree, n.Held[j].Slot, n.Held[j].State = evil, long, evil, evil
		}
	}
	for i := range s.Trees {
		s.Trees[i].Node += evil
	}
	for i := range s.Members {
		s.Members[i].Node += evil
	}
	for i := range s.Slots {
		s.Slots[i].Node = evil
	}
	for i := range s.Reservations {
		s.Reservations[i].Node += evil
	}
	s.Cluster.Fleet, s.Cluster.Error = evil, long
	for i := range s.Cluster.Endpoints {
		e := &s.Cluster.Endpoints[i]
		e.URL, e.Name, e.Version = evil, evil, evil
	}
	s.Cluster.Endpoints[0].Error = long
	s.Keeper.Error = evil
	s.Daemon.Error, s.Daemon.Running = evil, false
	s.Lock = fleet.LockInfo{State: "held", Holder: &fleet.LockHolder{Pid: 1, Program: long, Since: day.Add(-time.Minute)}}
	return s
}

// safe fails where a frame holds anything but printable text and colours.
func safe(t *testing.T, m *Model, what string) {
	t.Helper()
	for y, l := range strings.Split(m.View().Content, "\n") {
		if !onlyColours(l) {
			t.Fatalf("%s: line %d is not safe to draw: %q", what, y, l)
		}
	}
	if title := m.View().WindowTitle; plain.Text(title) != title {
		t.Fatalf("%s: the title is not safe: %q", what, title)
	}
}

func TestForeignTextNeverReachesTheTerminalRaw(t *testing.T) {
	full(t)
	bad := errors.New(evil)
	rowsTried := 6
	if raceDetector {
		rowsTried = 1
	}
	for _, d := range dialogs {
		t.Run(d.name, func(t *testing.T) {
			for _, size := range []struct{ w, h int }{{200, 60}, {80, 24}, {40, 10}} {
				if raceDetector && size.w != 80 {
					continue
				}
				m := still(hostile(), size.w, size.h, Options{Home: home, Detach: "ctrl-]"})
				m.choices.Roles = []string{evil, "dev"}
				m.choices.Profiles = []fleet.ProfileInfo{{Name: evil, Command: evil}}
				raw := []string{evil, "\x1b[5;5Hmoved", "\x1b[?1049l", "\x1b[31mred\x1b]52;c;x\x07"}
				m.Update(screenMsg{gen: m.screen.gen, screen: fleet.Screen{Lines: raw, Styled: raw, Title: evil, Rev: 1}})
				d.open(m)
				m.Update(tea.PasteMsg{Content: evil})
				safe(t, m, d.name)
				for row := range rowsTried {
					typed(m, "down")
					safe(t, m, fmt.Sprintf("%s, row %d", d.name, row))
				}
				m.polling.err, m.screen.err, m.screen.seen = bad, bad, false
				m.say(levelAlarm, evil, evil)
				m.record(end{level: levelWarn, text: evil, hint: evil}, evil)
				m.start(evil, evil, nil)
				m.offerElse(&held{order: fleet.Order{Tree: evil, Role: evil, Task: evil}, message: evil})
				m.Update(nil)
				safe(t, m, d.name+" with errors")
			}
		})
	}
}
