package cli_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/term"

	"fleetdeck/fleet"
)

// operated is a fleet to work on from a console: a plain agent that says what it is told, and one that asks twice.
// The trees are those that a test makes under src.
const operated = `
grace = "20s"
lock_wait = "20s"
prune_wait = "20s"
trees = [TREES]
[profiles.agent]
command = ["sh", "-c", "echo $FLEETDECK_MEMBER >> DIR/starts; echo at work; exec cat"]
ready = "pattern:at work"
[profiles.asker]
command = ["sh", "DIR/asker"]
ready = "report"
[console]
shell = ["sh", "-c", "echo shell in $FLEETDECK_TREE; read line"]
`

// asker reads a line for its first question, and one key for its second, a numbered menu.
const asker = `
$FLEETDECK_EXE report working -m reading
echo 'Which database?'
$FLEETDECK_EXE report waiting -m 'Which database?'
read a
echo "got <$a>"
printf '> 1. yes\n  2. no\n'
$FLEETDECK_EXE report waiting -m 'Sure? 1 yes 2 no'
stty -icanon
b=$(dd bs=1 count=1 2>/dev/null)
echo "key <$b>"
$FLEETDECK_EXE report working -m thanks
exec sleep 600
`

// newOperated is a rig with trees of these names, each a repository with one commit, and with settings added to its
// configuration.
func newOperated(t *testing.T, settings string, names ...string) (r *rig, trees []string) {
	t.Helper()
	var quoted []string
	for _, n := range names {
		quoted = append(quoted, fmt.Sprintf("%q", "DIR/src/"+n))
	}
	r = newRig(t, strings.ReplaceAll(operated, "TREES", strings.Join(quoted, ", "))+settings)
	if err := os.WriteFile(filepath.Join(r.dir, "asker"), []byte(asker), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		trees = append(trees, r.committed(n))
	}
	r.must(nil, "up")
	return r, trees
}

// step is a part of a flow on one rig. The flow ends with the first that fails.
func (r *rig) step(name string, do func(t *testing.T)) {
	r.t.Helper()
	outer := r.t.(*testing.T)
	defer func() { r.t = outer }()
	if !outer.Run(name, func(t *testing.T) { r.t = t; do(t) }) {
		outer.FailNow()
	}
}

// until waits for a condition and reports, not judges, how long that took since the call.
func (t *terminal) until(event string, ok func() bool) {
	t.r.t.Helper()
	began := time.Now()
	defer func() {
		if t.r.t.Failed() {
			t.r.t.Logf("the screen shows:\n%s", t.text())
		}
	}()
	for deadline := began.Add(patience); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.r.t.Fatalf("%s: not on the screen within %s", event, patience)
		}
	}
	t.r.t.Logf("%5d ms  %s", time.Since(began).Milliseconds(), event)
}

// untilShown waits until the screen matches a pattern, and reports how long that took.
func (t *terminal) untilShown(event, pattern string) {
	t.r.t.Helper()
	re := regexp.MustCompile(pattern)
	t.until(event+" → "+pattern, func() bool { return re.MatchString(t.text()) })
}

// untilGone waits until the screen no longer holds s.
func (t *terminal) untilGone(event, s string) {
	t.r.t.Helper()
	t.until(event+" → no "+s, func() bool { return !strings.Contains(t.text(), s) })
}

// answers presses a key until the dialog that shows text is gone: one that came up by itself takes none for a moment.
func (t *terminal) answers(key, text string) {
	t.r.t.Helper()
	t.shows(text)
	for range 20 {
		t.keys(key)
		for deadline := time.Now().Add(500 * time.Millisecond); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
			if !strings.Contains(t.text(), text) {
				return
			}
		}
	}
	t.r.t.Fatalf("the dialog does not take %q:\n%s", key, t.text())
}

// row is the line of the list that is about name, a base name, without what stands beside the list.
func (t *terminal) row(name string) string {
	re := regexp.MustCompile(`^[▌▐+ ]\S (\S*/)?` + regexp.QuoteMeta(name) + ` `)
	for _, l := range strings.Split(t.text(), "\n") {
		if l, _, _ = strings.Cut(l, "│"); re.MatchString(l) {
			return l
		}
	}
	return ""
}

// selects moves the cursor to the row of name.
func (t *terminal) selects(name string) {
	t.r.t.Helper()
	t.r.await(name+" is listed", func() bool { return t.row(name) != "" })
	for range 20 {
		row, text := t.row(name), t.text()
		if strings.HasPrefix(row, "▌") {
			return
		}
		key := "j"
		if strings.Index(text, row) < strings.Index(text, "\n▌") {
			key = "k"
		}
		was := t.selected()
		t.keys(key)
		t.r.await("the cursor moves", func() bool { return t.selected() != was })
	}
	t.r.t.Fatalf("%s cannot be selected:\n%s", name, t.text())
}

// selected is the row under the cursor.
func (t *terminal) selected() string {
	for _, l := range strings.Split(t.text(), "\n") {
		if strings.HasPrefix(l, "▌") {
			l, _, _ = strings.Cut(l, "│")
			return l
		}
	}
	return ""
}

// honest waits until the list of trees and its counts say what `trees` and `members` say.
func (t *terminal) honest() {
	t.r.t.Helper()
	var wrong string
	defer func() {
		if t.r.t.Failed() {
			t.r.t.Logf("%s; the screen shows:\n%s", wrong, t.text())
		}
	}()
	t.r.await("the screen is honest", func() bool {
		wrong = t.untruth()
		return wrong == ""
	})
}

// untruth is the first thing that the screen says and the command line does not.
func (t *terminal) untruth() string {
	t.r.t.Helper()
	var trees []fleet.TreeRow
	t.r.must(&trees, "trees")
	state := make(map[string]fleet.State)
	for _, m := range t.r.members() {
		state[m.ID] = m.State
	}
	text := t.text()
	count := make(map[fleet.Occupied]int)
	for _, x := range trees {
		count[x.Occupancy]++
		row := t.row(filepath.Base(x.Tree))
		if !strings.Contains(row, string(x.Occupancy)) || x.Member != "" && !strings.Contains(row, string(state[x.Member])) {
			return fmt.Sprintf("the row of %s is %q, want %s %s", x.Tree, row, x.Occupancy, state[x.Member])
		}
	}
	for glyph, n := range map[string]int{"●": count[fleet.Taken], "◐": count[fleet.Reserved], "○": count[fleet.Free]} {
		if !regexp.MustCompile(fmt.Sprintf(`(?m)%s %d( |$)`, glyph, n)).MatchString(text) {
			return fmt.Sprintf("%s %d is not on the screen", glyph, n)
		}
	}
	return ""
}

// copied waits until the program asked its terminal to copy s.
func (t *terminal) copied(s string) {
	t.r.t.Helper()
	want := []byte("\x1b]52;c;" + base64.StdEncoding.EncodeToString([]byte(s)))
	t.until("the terminal is asked to copy "+s, func() bool { return bytes.Contains(t.output(), want) })
}

// modes is the state of the terminal's line discipline: echo, line editing, signals.
func (t *terminal) modes() *term.State {
	t.r.t.Helper()
	return modesOf(t.r.t, t.pty)
}

func modesOf(t testing.TB, f *os.File) (s *term.State) {
	t.Helper()
	c, err := f.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var stateErr error
	if err := c.Control(func(fd uintptr) { s, stateErr = term.GetState(int(fd)) }); err != nil || stateErr != nil {
		t.Fatalf("the modes of the terminal: %v, %v", err, stateErr)
	}
	return s
}

// untouched checks, beside whole, that the line discipline is that of a new terminal and that no keyboard mode is left.
func (t *terminal) untouched() {
	t.r.t.Helper()
	t.whole()
	p, tty, err := pty.Open()
	if err != nil {
		t.r.t.Fatal(err)
	}
	defer p.Close()
	defer tty.Close()
	if now, was := t.modes(), modesOf(t.r.t, p); !reflect.DeepEqual(now, was) {
		t.r.t.Errorf("the modes of the terminal are %+v, were %+v", now, was)
	}
	t.plainKeys()
}

var (
	keyboard    = regexp.MustCompile(`\x1b\[(\?1049[hl]|[><][0-9;]*u|>4[0-9;]*m)`)
	mouseReport = regexp.MustCompile(`\x1b\[\?(1000|1002|1003)h`)
)

// plainKeys checks that no keyboard mode is left: what was pushed in kitty's protocol, where each of the two screens has a
// stack of its own, was popped afterwards, and modifyOtherKeys was put back after it was set.
func (t *terminal) plainKeys() {
	t.r.t.Helper()
	pushed := map[string]int{}
	on, others := "the main screen", false
	for _, m := range keyboard.FindAllSubmatch(t.output(), -1) {
		switch s := string(m[1]); {
		case s == "?1049h":
			on = "the alternate screen"
		case s == "?1049l":
			on = "the main screen"
		case strings.HasSuffix(s, "m"):
			others = s != ">4m" && s != ">4;0m"
		case s[0] == '>':
			pushed[on]++
		default:
			pushed[on] = max(pushed[on]-1, 0)
		}
	}
	for on, n := range pushed {
		if n != 0 {
			t.r.t.Errorf("%d keyboard modes are left pushed on %s", n, on)
		}
	}
	if others {
		t.r.t.Error("modifyOtherKeys is left on")
	}
}
