package keeper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/oklog/ulid/v2"

	"fleetdeck/fleet"
	"fleetdeck/lockfile"
)

const (
	queueFile   = "queue.json"
	queueFormat = "fleetdeck.queue/1"
	// queueWait is the acquire window of the queue's own lock, which nobody holds for longer than one change takes.
	queueWait = 5 * time.Second
)

// ErrNoTask means that no task of the queue has this id.
var ErrNoTask = errors.New("no such task in the queue")

// Task is something to do in a tree once it is free: a line of queue.json.
//
//	       id written          accepted
//	queued ──────────► sent ─────────────► (gone)
//	  ▲                 │ │
//	  └─────────────────┘ └─(too many refusals, or nobody knows)─► given up
//	   provably not sent                          reset by hand ──► queued
type Task struct {
	ID      string        `json:"id"`
	Tree    string        `json:"tree"`
	Role    fleet.Role    `json:"role"`
	Profile string        `json:"profile"`
	Task    string        `json:"task"`
	Grace   time.Duration `json:"grace_ns,omitempty"`
	NoGit   bool          `json:"no_git,omitempty"`
	// BesideForeign sends it also where an agent works that fleetdeck did not start.
	BesideForeign bool `json:"beside_foreign,omitempty"`

	AddedAt time.Time `json:"added_at"`
	// Reservation is the id under which it is being sent, written before anybody is asked.
	Reservation string    `json:"reservation"`
	SentAt      time.Time `json:"sent_at,omitzero"`
	// Failures counts the refusals that were the task's own fault; after too many it is given up.
	Failures  int            `json:"failures,omitempty"`
	NotBefore fleet.Deadline `json:"not_before,omitzero"`
	GivenUp   bool           `json:"given_up"`
	// Error is why it was refused last, for people.
	Error string `json:"error"`
}

func (t *Task) order() fleet.Order {
	return fleet.Order{Tree: t.Tree, Role: t.Role, Profile: t.Profile, Task: t.Task, Grace: t.Grace, NoGit: t.NoGit, ID: t.Reservation, BesideForeign: t.BesideForeign}
}

// Queue is the tasks that wait for their trees, first come, first served in each tree. It changes only under a lock of its
// own, held for one change. It is safe for use by several goroutines and processes.
type Queue struct{ file *lockfile.File }

// OpenQueue opens the queue in the state directory dir. A missing file is an empty queue.
func OpenQueue(dir string) (*Queue, error) {
	file, err := lockfile.Open(filepath.Join(dir, queueFile))
	if err != nil {
		return nil, fmt.Errorf("open the queue: %w", err)
	}
	return &Queue{file}, nil
}

// Add puts t at the end, with an id of its own, and says how many tasks of its tree are before it.
func (q *Queue) Add(ctx context.Context, t Task, now fleet.Instant) (added Task, before int, err error) {
	t.ID, t.AddedAt = ulid.Make().String(), now.Wall.UTC().Truncate(time.Millisecond)
	err = q.update(ctx, func(doc *lockfile.Document) (bool, error) {
		tasks, err := q.tasks(doc)
		if err != nil {
			return false, err
		}
		before = 0
		for _, o := range tasks {
			if o.Tree == t.Tree && !o.GivenUp {
				before++
			}
		}
		return true, set(doc, t)
	})
	return t, before, err
}

// List gives the tasks in their order.
func (q *Queue) List() ([]Task, error) {
	doc, err := q.parse(q.file.Read())
	if err != nil {
		return nil, err
	}
	return q.tasks(doc)
}

// Remove takes a task out and gives it as it stood. One that is being sent may be started all the same: its Reservation is set.
func (q *Queue) Remove(ctx context.Context, id string) (Task, error) {
	return q.change(ctx, id, func(*Task) bool { return false })
}

// Watch sends a token whenever the queue may have changed.
func (q *Queue) Watch(ctx context.Context) <-chan struct{} {
	return q.file.Watch(ctx, lockfile.WatchOptions{})
}

// reset lets the tasks of tree that were given up be tried again, and counts them.
func (q *Queue) reset(ctx context.Context, tree string) (n int, err error) {
	err = q.update(ctx, func(doc *lockfile.Document) (bool, error) {
		tasks, err := q.tasks(doc)
		n = 0
		for _, t := range tasks {
			if t.Tree == tree && (t.GivenUp || t.Failures > 0) {
				if t.GivenUp { // else it may be on its way right now
					t.Reservation, t.SentAt = "", time.Time{}
				}
				t.GivenUp, t.Failures, t.NotBefore, t.Error = false, 0, fleet.Deadline{}, ""
				n++
				err = errors.Join(err, set(doc, t))
			}
		}
		return n > 0, err
	})
	return n, err
}

// change changes the task id by edit, or takes it out if edit says not to keep it. It gives the task as it stood before.
// An [ErrNoTask] says that it is gone already.
func (q *Queue) change(ctx context.Context, id string, edit func(*Task) (keep bool)) (before Task, err error) {
	err = q.update(ctx, func(doc *lockfile.Document) (bool, error) {
		raw, ok := doc.Get(id)
		if !ok {
			return false, fmt.Errorf("%w: %s", ErrNoTask, id)
		}
		t, err := q.decode(id, raw)
		if err != nil {
			return false, err
		}
		before = t
		if edit(&t) {
			return true, set(doc, t)
		}
		doc.Delete(id)
		return true, nil
	})
	return before, err
}

// update is one read-modify-write inside the lock; change says whether there is anything to write.
func (q *Queue) update(ctx context.Context, change func(*lockfile.Document) (bool, error)) error {
	held, err := q.file.Lock(ctx, queueWait)
	if err != nil {
		return fmt.Errorf("take the queue's lock: %w", err)
	}
	defer held.Unlock()
	doc, err := q.parse(held.Read())
	if err != nil {
		return err
	}
	write, err := change(doc)
	if err != nil || !write {
		return err
	}
	return replace(held, doc, "write the queue")
}

func (q *Queue) parse(data []byte, err error) (*lockfile.Document, error) {
	return parse(q.file.Path(), queueFormat, data, err)
}

func (q *Queue) tasks(doc *lockfile.Document) ([]Task, error) {
	tasks := make([]Task, 0, doc.Len())
	for id, raw := range doc.All() {
		t, err := q.decode(id, raw)
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, t)
	}
	return tasks, nil
}

func (q *Queue) decode(id string, raw json.RawMessage) (Task, error) {
	var t Task
	if err := json.Unmarshal(raw, &t); err != nil {
		return Task{}, damaged(q.file.Path(), fmt.Errorf("task %s: %w", id, err))
	}
	t.ID = id
	return t, nil
}

func set(doc *lockfile.Document, t Task) error {
	raw, err := json.Marshal(t)
	if err != nil {
		return fmt.Errorf("encode task %s: %w", t.ID, err)
	}
	doc.Set(t.ID, raw)
	return nil
}

// parse reads a document of the keeper's. A missing one is empty.
func parse(path, format string, data []byte, err error) (*lockfile.Document, error) {
	if errors.Is(err, fs.ErrNotExist) {
		return lockfile.NewDocument(format), nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	doc, err := lockfile.Parse(data, format)
	if err != nil {
		return nil, damaged(path, err)
	}
	return doc, nil
}

// damaged refuses to go on with a document that cannot be trusted.
func damaged(path string, err error) error {
	return fleet.Refuse(fleet.CodeFileCorrupt, "%s: %w", path, err).
		WithHint("nothing was changed; mend the file, or move it aside to start without it")
}

// replace writes a document. A change that is visible but perhaps not durable is done.
func replace(held *lockfile.Held, doc *lockfile.Document, what string) error {
	var unsure *lockfile.DurabilityError
	if err := held.Replace(doc.Bytes()); err != nil && !errors.As(err, &unsure) {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
