package tui

import (
	"context"
	"testing"
	"time"
)

func TestEscCallsOffAllThatOneCommandBeganAndThenTheCommandBefore(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		l.f.act = untilCancelled
		l.press("m")
		l.typeText("hello")
		l.press("enter")
		l.press("space", "j", "space", "s", "enter")
		if n := len(l.m.acts); n != 3 {
			t.Fatalf("%d acts are under way, want 3", n)
		}
		l.press("esc")
		if n := len(l.m.acts); n != 1 || l.m.acts[0].cancelled {
			t.Errorf("after esc %d acts are under way, want the message alone:\n%s", n, l.screen())
		}
		l.pass(2 * quiet)
		l.press("esc")
		if n := len(l.m.acts); n != 0 {
			t.Errorf("after another esc %d acts are under way, want none", n)
		}
	})
}

func TestEscReachesTheCommandBeforeOneThatIsSlowToEnd(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		l.f.act = untilCancelled
		l.press("m")
		l.typeText("hello")
		l.press("enter")
		slow := l.m.start("slow", "", func(ctx context.Context) end { time.Sleep(time.Minute); return end{} })
		l.do(slow)
		l.press("esc", "esc")
		if n := len(l.m.acts); n != 1 || !l.m.acts[0].cancelled {
			t.Errorf("%d acts are under way, want the slow one alone", n)
		}
		l.pass(time.Minute)
	})
}
