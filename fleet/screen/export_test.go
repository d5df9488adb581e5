package screen

import "time"

// SetIdle makes m stop so soon after its last reader left, and give up its screen so much later. It must come before
// the first reader.
func (m *Mirror) SetIdle(idle, drop time.Duration) { m.idle, m.drop = idle, drop }

// SetPatience makes m wait so long for an agent to repaint. It must come before the first reader.
func (m *Mirror) SetPatience(d time.Duration) { m.patience, m.repaint.patience = d, d }

// Dropped reports whether the mirror has given up its screen.
func (m *Mirror) Dropped() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.scr == nil
}

// Running reports whether the mirror follows its terminal.
func (m *Mirror) Running() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.running
}
