package screen

import (
	"testing"
	"time"
)

// SetIdle makes mirrors stop so soon after their last reader left, during a test.
func SetIdle(t *testing.T, d time.Duration) {
	old := idleAfter
	idleAfter = d
	t.Cleanup(func() { idleAfter = old })
}

// Running reports whether the mirror follows its terminal.
func (m *Mirror) Running() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.running
}
