package tui

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"fleetdeck/fleet"
)

// loop runs a model as the framework does, one message after the other, on the fake clock of a synctest bubble.
type loop struct {
	t    *testing.T
	m    *Model
	f    *fakeFleet
	msgs chan tea.Msg
	quit bool
	seen []tea.Msg
}

// inLoop runs test with a console over the example fleet.
func inLoop(t *testing.T, test func(t *testing.T, l *loop)) {
	t.Helper()
	inLoopOf(t, nil, Options{Home: home}, test)
}

// inLoopOf is inLoop over a fleet that prepare has changed.
func inLoopOf(t *testing.T, prepare func(*fakeFleet), opts Options, test func(t *testing.T, l *loop)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		now := func() fleet.Instant { return instant(time.Since(start)) }
		f := newFake(example(now()))
		f.now = now
		f.screens["01JEABCD0001"] = apiScreen()
		f.plan = examplePlan()
		if prepare != nil {
			prepare(f)
		}
		ctx, cancel := context.WithCancel(t.Context())
		l := &loop{t: t, m: New(f, opts), f: f, msgs: make(chan tea.Msg, 1<<12)}
		l.m.ctx = ctx
		l.do(l.m.Init())
		l.send(tea.WindowSizeMsg{Width: 120, Height: 40})
		l.settle()
		defer func() {
			cancel()
			time.Sleep(2 * heartbeat) // the last tea.Ticks cannot be cancelled
		}()
		test(t, l)
	})
}

func (l *loop) do(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	go func() {
		switch msg := cmd().(type) {
		case nil:
		case tea.BatchMsg:
			for _, c := range msg {
				l.do(c)
			}
		default:
			l.msgs <- msg
		}
	}()
}

func (l *loop) send(msg tea.Msg) {
	l.seen = append(l.seen, msg)
	if _, ok := msg.(tea.QuitMsg); ok {
		l.quit = true
	}
	_, cmd := l.m.Update(msg)
	l.do(cmd)
}

// settle takes in what is there to be taken in, without letting time pass.
func (l *loop) settle() {
	for {
		synctest.Wait()
		select {
		case msg := <-l.msgs:
			l.send(msg)
		default:
			return
		}
	}
}

// pass lets time pass.
func (l *loop) pass(d time.Duration) {
	const step = 10 * time.Millisecond
	for end := time.Now().Add(d); time.Now().Before(end); l.settle() {
		time.Sleep(min(step, time.Until(end)))
	}
}

// press types keys as they are written in bindings. A word of more than one letter that is no key is typed.
func (l *loop) press(keys ...string) {
	for _, k := range keys {
		l.send(keyOf(k))
		l.settle()
	}
}

func (l *loop) typeText(s string) {
	for _, r := range s {
		l.send(tea.KeyPressMsg{Code: r, Text: string(r)})
	}
	l.settle()
}

var keyCodes = map[string]tea.KeyPressMsg{
	"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape}, "tab": {Code: tea.KeyTab},
	"shift+tab": {Code: tea.KeyTab, Mod: tea.ModShift}, "up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown},
	"left": {Code: tea.KeyLeft}, "right": {Code: tea.KeyRight}, "home": {Code: tea.KeyHome}, "end": {Code: tea.KeyEnd},
	"backspace": {Code: tea.KeyBackspace}, "delete": {Code: tea.KeyDelete}, "pgup": {Code: tea.KeyPgUp},
	"pgdown": {Code: tea.KeyPgDown}, "space": {Code: tea.KeySpace, Text: " "}, "alt+enter": {Code: tea.KeyEnter, Mod: tea.ModAlt},
}

func keyOf(s string) tea.KeyPressMsg {
	if k, ok := keyCodes[s]; ok {
		return k
	}
	if rest, ok := strings.CutPrefix(s, "ctrl+"); ok {
		return tea.KeyPressMsg{Code: []rune(rest)[0], Mod: tea.ModCtrl}
	}
	r := []rune(s)[0]
	return tea.KeyPressMsg{Code: r, Text: s}
}

// screen is the frame without its colours.
func (l *loop) screen() string { return ansi.Strip(l.m.View().Content) }

func (l *loop) wants(texts ...string) {
	l.t.Helper()
	for _, s := range texts {
		if !strings.Contains(l.screen(), s) {
			l.t.Errorf("the frame does not hold %q:\n%s", s, l.screen())
		}
	}
}

func (l *loop) lacks(texts ...string) {
	l.t.Helper()
	for _, s := range texts {
		if strings.Contains(l.screen(), s) {
			l.t.Errorf("the frame holds %q:\n%s", s, l.screen())
		}
	}
}

func (l *loop) wantCalls(calls ...string) {
	l.t.Helper()
	l.f.mu.Lock()
	defer l.f.mu.Unlock()
	if !slices.Equal(l.f.calls, calls) {
		l.t.Errorf("calls = %q, want %q", l.f.calls, calls)
	}
}

// row is the row of a tree in the list.
func (l *loop) row(tree string) string {
	return regexp.MustCompile(`[▌ ]\S ` + regexp.QuoteMeta(tree) + ` [^│]*`).FindString(l.screen())
}
