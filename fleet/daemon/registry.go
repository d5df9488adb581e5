package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/lockfile"
)

// registryFormat is the registry file's "$format".
const registryFormat = "fleetdeck.registry/1"

// Steps of a record.
//
//	accepted ──► booting ──► listed ──► exited
//	    │           │
//	    └───────────┴──► failed
//
// Every other transition is refused. A record is a launch until it is listed, and a member from then on.
const (
	stepAccepted = "accepted" // durable; nothing was started yet, as far as we know
	stepBooting  = "booting"  // its terminal is there
	stepListed   = "listed"
	stepExited   = "exited"
	stepFailed   = "failed" // it was never listed
)

var nextSteps = map[string][]string{
	"":           {stepAccepted},
	stepAccepted: {stepAccepted, stepBooting, stepFailed},
	stepBooting:  {stepBooting, stepListed, stepFailed},
	stepListed:   {stepListed, stepExited},
	stepExited:   {stepExited},
	stepFailed:   {stepFailed},
}

// record is all that the daemon knows of one launch or member. It is what the registry keeps, one a line.
type record struct {
	ID              string         `json:"id"`
	Step            string         `json:"step"`
	Reservation     string         `json:"reservation"`
	Tree            string         `json:"tree"`
	File            fleet.FileID   `json:"file,omitzero"`
	Role            fleet.Role     `json:"role"`
	RequestedRole   fleet.Role     `json:"requested_role"`
	Profile         string         `json:"profile"`
	Slot            string         `json:"slot,omitempty"`
	Task            string         `json:"task,omitempty"`
	Deadline        fleet.Deadline `json:"deadline"`
	AcceptedAt      time.Time      `json:"accepted_at"`
	StartedAt       time.Time      `json:"started_at,omitzero"`
	ListedAt        time.Time      `json:"listed_at,omitzero"`
	EndedAt         time.Time      `json:"ended_at,omitzero"`
	Launcher        string         `json:"launcher"`
	Agent           fleet.Process  `json:"agent,omitzero"`
	CharterSHA256   string         `json:"charter_sha256,omitempty"`
	CharterMismatch bool           `json:"charter_mismatch,omitempty"`
	TokenSHA256     string         `json:"token_sha256,omitempty"`
	State           fleet.State    `json:"state,omitempty"`
	StateMessage    string         `json:"state_message,omitempty"`
	StateSource     string         `json:"state_source,omitempty"`
	// StateAt is since when StateSource says so, StateSeq the sequence of the last hook that changed something.
	StateAt  time.Time `json:"state_at,omitzero"`
	StateSeq uint64    `json:"state_seq,omitempty"`
	// Session is the agent's own name of its session.
	Session string `json:"session,omitempty"`
	// Resumes is the member whose session it took up. TaskTold says that it was told its task there, and not again.
	Resumes  string `json:"resumes,omitempty"`
	TaskTold bool   `json:"task_told,omitempty"`
	// Reported says that the agent reported a state: a launch that waits for that is ready.
	Reported bool           `json:"reported,omitempty"`
	ExitCode *int           `json:"exit_code,omitempty"`
	Failure  *fleet.Refusal `json:"failure,omitempty"`
	// Also are the trees that it holds beside Tree.
	Also []fleet.Tree `json:"also,omitempty"`
	// Made says that the tree was made for this launch.
	Made *fleet.MadeWorktree `json:"made,omitempty"`
}

func (r *record) launching() bool { return r.Step == stepAccepted || r.Step == stepBooting }
func (r *record) over() bool      { return r.Step == stepExited || r.Step == stepFailed }
func (r *record) endedAt() time.Time {
	if r.EndedAt.IsZero() {
		return r.AcceptedAt
	}
	return r.EndedAt
}

func (r *record) terminal() string { return r.Launcher + ":" + r.ID }

func (r *record) member() fleet.Member {
	return fleet.Member{
		ID: r.ID, Tree: r.Tree, File: r.File, Role: r.Role, RequestedRole: r.RequestedRole, Profile: r.Profile, Slot: r.Slot,
		Terminal: r.terminal(), Pid: r.Agent.Pid, State: r.State, StateMessage: r.StateMessage, StateSource: r.StateSource,
		StartedAt: r.StartedAt, ListedAt: r.ListedAt, Reservation: r.Reservation, CharterSHA256: r.CharterSHA256,
		CharterMismatch: r.CharterMismatch, ExitCode: r.ExitCode, EndedAt: r.EndedAt, Task: r.Task, Also: r.Also,
	}
}

func (r *record) launch() fleet.Launch {
	return fleet.Launch{
		ID: r.ID, Tree: r.Tree, File: r.File, Role: r.Role, Profile: r.Profile, Slot: r.Slot, Reservation: r.Reservation,
		Step: r.Step, Terminal: r.terminal(), Pid: r.Agent.Pid, AcceptedAt: r.AcceptedAt, Deadline: r.Deadline, Also: r.Also,
	}
}

// Ended records are kept for those who ask how it went, up to these bounds.
const (
	keepEnded    = 200
	keepEndedAt  = 24 * time.Hour
	keepEndedFor = time.Hour // at the least, whatever their number: a keeper may still ask, as long as its forgetAfter says
)

// registry is the daemon's durable memory: one file, replaced atomically at each change. Its lock is held for the daemon's
// whole life, and so also says that there is one daemon only.
type registry struct {
	held  *lockfile.Held
	path  string
	clock func() fleet.Instant

	mu  sync.Mutex // guards doc; held across the write, so that changes reach the disk in their order
	doc *lockfile.Document

	// now is what readers see: a whole version that is on disk already. It is never changed, only replaced.
	now atomic.Pointer[registryView]
	// forgot is told the id of each record that was dropped for its age.
	forgot func(id string)
}

type registryView struct {
	records map[string]*record
	roster  fleet.Roster
}

// ErrRunning means that another daemon runs on this state directory.
var ErrRunning = errors.New("another daemon runs on this state directory")

func openRegistry(ctx context.Context, dir string, clock func() fleet.Instant) (*registry, error) {
	file, err := lockfile.Open(filepath.Join(dir, "registry.json"))
	if err != nil {
		return nil, fmt.Errorf("open the registry: %w", err)
	}
	held, err := file.Lock(ctx, time.Second)
	if errors.Is(err, lockfile.ErrBusy) {
		return nil, fmt.Errorf("%w: %w", ErrRunning, err)
	}
	if err != nil {
		return nil, fmt.Errorf("lock the registry: %w", err)
	}
	r := &registry{held: held, path: file.Path(), clock: clock, forgot: func(string) {}}
	if err := r.load(); err != nil {
		held.Unlock()
		return nil, err
	}
	return r, nil
}

func (r *registry) load() error {
	data, err := r.held.Read()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.doc = lockfile.NewDocument(registryFormat)
	case err != nil:
		return fmt.Errorf("read the registry: %w", err)
	default:
		if r.doc, err = lockfile.Parse(data, registryFormat); err != nil {
			return fmt.Errorf("%s: %w: the daemon's memory of its members is damaged; move the file aside to start without it", r.path, err)
		}
	}
	records := map[string]*record{}
	for id, raw := range r.doc.All() {
		rec := &record{}
		if err := json.Unmarshal(raw, rec); err != nil || rec.ID != id {
			return fmt.Errorf("%s: record %s is damaged: %w", r.path, id, errors.Join(err, lockfile.ErrCorrupt))
		}
		records[id] = rec
	}
	r.publish(records)
	return nil
}

func (r *registry) close() error { return r.held.Unlock() }

// check tells whether this is still the registry of its state directory.
func (r *registry) check() error { return r.held.Check() }

func (r *registry) view() *registryView { return r.now.Load() }

func (r *registry) get(id string) (record, bool) {
	rec, ok := r.view().records[id]
	if !ok {
		return record{}, false
	}
	return *rec, true
}

// byReservation finds the record that came of a reservation.
func (v *registryView) byReservation(id string) (record, bool) {
	for _, rec := range v.records {
		if rec.Reservation == id {
			return *rec, true
		}
	}
	return record{}, false
}

// put writes rec, durably, before anybody can see it. A step that cannot follow on the one before is an error.
func (r *registry) put(rec record) error {
	return r.update(rec.ID, func(old *record) error { *old = rec; return nil })
}

// update changes the record id by change, which sees it as it stands and may refuse.
func (r *registry) update(id string, change func(*record) error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	records := r.view0()
	var next record
	if old := records[id]; old != nil {
		next = *old
	}
	from := next.Step
	if err := change(&next); err != nil {
		return err
	}
	if !slices.Contains(nextSteps[from], next.Step) {
		return fmt.Errorf("record %s cannot go from %q to %q", id, from, next.Step)
	}
	raw, err := json.Marshal(&next)
	if err != nil {
		return fmt.Errorf("record %s: %w", id, err)
	}
	r.doc.Set(id, raw)
	records = maps.Clone(records)
	records[id] = &next
	old := forgettable(records, r.clock())
	for _, gone := range old {
		r.doc.Delete(gone)
		delete(records, gone)
	}
	if err := r.write(); err != nil {
		return err
	}
	r.publish(records)
	for _, gone := range old {
		r.forgot(gone)
	}
	return nil
}

// write replaces the file. If that fails the document in memory goes back to what is on disk.
func (r *registry) write() error {
	err := r.held.Replace(r.doc.Bytes())
	var unsure *lockfile.DurabilityError
	if err == nil || errors.As(err, &unsure) {
		return nil
	}
	doc := lockfile.NewDocument(registryFormat)
	for id, rec := range r.view0() {
		if raw, merr := json.Marshal(rec); merr == nil {
			doc.Set(id, raw)
		}
	}
	r.doc = doc
	return fmt.Errorf("write the registry: %w", err)
}

func (r *registry) view0() map[string]*record {
	if v := r.now.Load(); v != nil {
		return v.records
	}
	return nil
}

// forgettable names the ended records that are too many or too old at now. One whose reservation may still stand is never
// among them: it is the proof that its worker was listed.
func forgettable(records map[string]*record, now fleet.Instant) []string {
	var ended []*record
	for _, rec := range records {
		if rec.over() {
			ended = append(ended, rec)
		}
	}
	if len(ended) == 0 {
		return nil
	}
	slices.SortFunc(ended, func(a, b *record) int { return b.endedAt().Compare(a.endedAt()) })
	var gone []string
	for i, rec := range ended {
		age := now.Wall.Sub(rec.endedAt())
		old := age > keepEndedAt || i >= keepEnded && age > keepEndedFor
		if old && rec.Deadline.Remaining(now) <= 0 {
			gone = append(gone, rec.ID)
		}
	}
	return gone
}

func (r *registry) publish(records map[string]*record) {
	v := &registryView{records: records, roster: fleet.Roster{Members: []fleet.Member{}, Launches: []fleet.Launch{}}}
	for _, rec := range records {
		switch {
		case rec.launching():
			v.roster.Launches = append(v.roster.Launches, rec.launch())
		case rec.Step != stepFailed:
			v.roster.Members = append(v.roster.Members, rec.member())
		}
	}
	slices.SortFunc(v.roster.Launches, func(a, b fleet.Launch) int { return strings.Compare(a.ID, b.ID) })
	slices.SortFunc(v.roster.Members, func(a, b fleet.Member) int { return strings.Compare(a.ID, b.ID) })
	r.now.Store(v)
}
