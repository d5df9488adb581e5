// Package tui is the console: it shows the fleet as it is, and acts on it for an operator.
//
// It guarantees that
//   - what it shows is derived from one [fleet.Snapshot] and the present moment; how old that snapshot is can be seen,
//     and data that is stale or broken turns into a bar over the lists;
//   - no frame is wider or taller than the screen, whatever a branch, a task or an agent's screen holds;
//   - nothing is changed but by a key that a dialog names or the footer shows, every change can be cancelled while it
//     waits, and who it waits for is shown;
//   - the terminal is whole afterwards, also after a panic, SIGHUP, SIGQUIT and SIGTERM.
//
// It touches no file, no socket and no process itself: it is handed a [Fleet]. Update and View never block; whatever
// may block is a tea.Cmd. It starts no goroutine of its own, so that no panic escapes [Run].
//
// One message goes through [Model.Update], which routes it to a method; one frame is made by [Model.View] from parts
// that each render into a rectangle that layout.go gives them.
package tui
