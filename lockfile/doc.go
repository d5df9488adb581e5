// Package lockfile keeps one JSON document in one file, and the lock that guards it.
//
// It guarantees, among all programs that take the lock:
//
//   - Exclusion. Between [File.Lock] and [Held.Unlock] no other process, and no other goroutine of this one, is in the
//     section. The lock is flock(2) on a sidecar, the document's path plus ".lock"; on Linux an open-file-description
//     lock is taken with it, so that programs that use fcntl(2) locks (Java, Python's lockf, C) are excluded too. The
//     kernel frees it when its holder dies, however it dies.
//   - Order. Waiting is first come, first served: by the kernel between processes, by a queue within one. Nobody polls.
//   - An end to waiting. A caller names its acquire window and gets a [BusyError] that says who holds the lock.
//   - Whole files. [Held.Replace] leaves the old document or the new one, on disk and in every reader's eyes, also
//     after a crash at any instant. [File.Read] therefore needs no lock.
//
// The caller must read, decide and replace within one hold, and must treat a document that cannot be parsed as a reason
// to stop, never as an empty one. It must not remove or rename the sidecar: waiters notice and start over, and a holder
// notices before it writes ([ErrLockLost]), but the hold itself was void.
//
// The package knows nothing of what the document says, beyond its being a JSON object of entries with a "$format".
package lockfile
