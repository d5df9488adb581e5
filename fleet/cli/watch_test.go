package cli

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"fleetdeck/fleet/config"
	"fleetdeck/tui"
)

// A panic beside the console must end it through its context: only then is the terminal put back before it is reported.
func TestAPanicOfTheObserverEndsWhatIsShown(t *testing.T) {
	s := &session{conf: &config.Config{}} // without a book nothing can be observed
	ctx, _, stop := s.watch(t.Context())
	defer stop()
	select {
	case <-ctx.Done():
	case <-time.After(30 * time.Second):
		t.Fatal("the context did not end")
	}
	var p *tui.Panic
	if !errors.As(context.Cause(ctx), &p) || !strings.Contains(string(p.Stack), "observe") {
		t.Errorf("it ended for %v, want a panic with the stack of the observer", context.Cause(ctx))
	}
}
