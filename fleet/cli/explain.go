package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fleetdeck/fleet"
	"fleetdeck/fleet/ledger"
	"fleetdeck/fleet/slots"
	"fleetdeck/fleet/tree"
)

// explanation is everything about why a tree can or cannot be dispatched to now, as `explain --json` prints it.
type explanation struct {
	// Asked is the path as it was given, Tree the key that it stands for, Spelling how the one names the other.
	Asked    string `json:"asked"`
	Tree     string `json:"tree"`
	Spelling string `json:"spelling"`

	Occupancy fleet.Occupied `json:"occupancy"`
	// Holder is who is in the way, nil where nobody is, or nobody knows.
	Holder *holderReport `json:"holder,omitempty"`
	// Entries are the reservations that stand in the file for this tree, under whatever path.
	Entries []entryReport    `json:"entries"`
	Slots   []roleReport     `json:"slots"`
	Lock    fleet.LockInfo   `json:"lock"`
	Daemon  fleet.DaemonInfo `json:"daemon"`
	File    fleet.FileInfo   `json:"file"`
	// Node is this host, in a fleet of many.
	Node string `json:"node,omitempty"`
	// Dispatch is what `dispatch` would answer now.
	Dispatch answerReport `json:"dispatch"`
	Advice   []string     `json:"advice"`

	at       fleet.Instant
	lockWait time.Duration
}

// holderReport is who holds a tree.
type holderReport struct {
	// Kind is "member", "launch", "reservation" or "foreign agent".
	Kind    string      `json:"kind"`
	ID      string      `json:"id"`
	Path    string      `json:"path"` // the key that it holds: another path of the same directory, perhaps
	Role    fleet.Role  `json:"role"`
	Profile string      `json:"profile"`
	State   fleet.State `json:"state,omitempty"` // of a member
	Step    string      `json:"step,omitempty"`  // of a launch
	Since   time.Time   `json:"since,omitzero"`
	// Dispatcher is who sent it, where the file still says so.
	Dispatcher fleet.Dispatcher `json:"dispatcher,omitzero"`
	// RemainingS is until when it can last by itself, in seconds; a member has no such end.
	RemainingS  float64   `json:"remaining_s,omitempty"`
	Until       time.Time `json:"until,omitzero"`
	Reservation string    `json:"reservation"`
	EndedBy     string    `json:"ended_by"`
}

// entryReport is one entry with the verdict on it.
type entryReport struct {
	fleet.ReservationRow
	Droppable bool   `json:"droppable"`
	Why       string `json:"why"`
}

// roleReport is the slots of one limited role.
type roleReport struct {
	Role  fleet.Role   `json:"role"`
	Free  int          `json:"free"`
	Slots []fleet.Slot `json:"slots"`
}

// answerReport is what a dispatch would come to. It is a forecast: only the daemon finds out whether the agent starts.
type answerReport struct {
	Role    fleet.Role `json:"role"`
	Profile string     `json:"profile"`
	// Outcome is "accepted" or "refused".
	Outcome  string     `json:"outcome"`
	Code     fleet.Code `json:"code,omitempty"`
	Message  string     `json:"message,omitempty"`
	ExitCode int        `json:"exit_code"`
}

func newExplainCommand(g *globals) *cobra.Command {
	var o orderFlags
	cmd := &cobra.Command{
		Use: "explain TREE|MEMBER", Short: "why a tree can be dispatched to now, or cannot; who says what a member is doing", Args: exactly("TREE or MEMBER"),
		Long: `explain says which tree a path is, who holds it, since when, until when and what will end it, what stands in the reservation
file for it, how lock, daemon and slots are, what dispatch would answer now, and what to do. It decides by the same rule as
dispatch, takes no lock and changes nothing. It exits with 0 whatever dispatch would answer: that is in what it prints.

Of a member, named by its id or the end of it, it says instead who said what it is doing and when, the best witness first: its own
hook, its report, its terminal's title and progress, its screen, its silence.
` + exitHelp,
		RunE: g.anywhere(func(cmd *cobra.Command, args []string) error {
			s, err := g.open()
			if err != nil {
				return err
			}
			if err := s.treeElsewhere(args[0]); err != nil {
				return err
			}
			_, name := s.elsewhere(args[0])
			if id, ok := s.memberNamed(cmd.Context(), name); ok {
				return explainMember(cmd.Context(), s, id)
			}
			if _, err := os.Lstat(name); err != nil { // no path of this host
				if there := s.memberElsewhere(cmd.Context(), name); there != nil {
					return there
				}
			}
			order, err := o.order(s, name)
			if err != nil {
				return err
			}
			e, err := explain(cmd.Context(), s, order)
			if err != nil {
				return err
			}
			if g.json {
				return g.printJSON(e)
			}
			return printLines(g.out, e.lines())
		}),
	}
	o.add(cmd)
	return cmd
}

// explain explains the tree of order, and what a dispatch of order would come to. What cannot be found out is part of the
// explanation; an error is a caller that stopped waiting.
func explain(ctx context.Context, s *session, order fleet.Order) (explanation, error) {
	e := explanation{
		Asked: order.Tree, at: now(), lockWait: s.conf.LockWait, Lock: s.book.LockInfo(), Entries: []entryReport{},
		Dispatch: answerReport{Role: order.Role, Profile: order.Profile},
	}
	t, resolveErr := tree.Resolve(ctx, order.Tree, order.NoGit)
	if resolveErr != nil { // what stands in the file for it is worth knowing all the same
		t = fleet.Tree{Path: treeKey(ctx, order.Tree)}
		t.File, _ = tree.Identify(t.Path)
	}
	e.Tree = t.Path
	e.Spelling = spelling(order.Tree, t.Path)

	// The file first and the roster second, as everywhere: see fleet.Snapshot.
	entries, fileErr := s.ledger.Read()
	e.File = fleet.FileInfo{Path: s.ledger.Path(), ReadAt: e.at.Wall}
	if fileErr != nil {
		e.File.Error = fileErr.Error()
	}
	roster, filled, daemonErr := e.askDaemon(ctx, s)
	if ctx.Err() != nil {
		return e, ctx.Err()
	}
	e.judge(t, entries, roster)
	holding := fleet.Occupancy(t, entries, roster, e.at)
	e.Occupancy, e.Holder = holding.State, holderOf(holding, e.at)
	if s.cluster == nil || fileErr == nil {
		filled = s.slotRows(ctx, filled)
	} else {
		filled = s.slotsUnsure(filled)
	}
	e.Slots = byRole(filled)

	err := firstError(
		resolveErr,
		e.allowed(ctx, s),
		fileErr,
		daemonErr,
		e.inTheWay(order.BesideForeign),
		s.configured(order),
	)
	if s.cluster == nil {
		err = firstError(err, slotFor(s, order, filled))
	} else {
		e.Node = s.conf.Cluster.Node
		err = firstError(err, e.foresee(ctx, s, order, t))
	}
	e.Dispatch.Outcome = fleet.Accepted
	if err != nil {
		e.Dispatch.Outcome, e.Dispatch.Message, e.Dispatch.ExitCode = fleet.Refused, err.Error(), exitCode(err)
		if r := fleet.RefusalOf(err); r != nil {
			e.Dispatch.Code = r.Code
		}
	}
	e.Advice = e.advice(err)
	return e, nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// spelling says how asked names the tree key.
func spelling(asked, key string) string {
	abs, err := filepath.Abs(asked)
	if err != nil {
		return ""
	}
	real, err := filepath.EvalSymlinks(abs)
	switch {
	case err != nil:
		return "a path that is not there"
	case abs == key && filepath.IsAbs(asked):
		return "its own path"
	case abs == key:
		return "a relative path"
	case real == key:
		return "a path through a symbolic link"
	case strings.HasPrefix(real, key+"/"):
		return "a directory inside it"
	}
	return "another name of the same directory"
}

// askDaemon asks who is there, and what fills the slots.
func (e *explanation) askDaemon(ctx context.Context, s *session) (roster fleet.Roster, filled []fleet.Slot, err error) {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	e.Daemon.Socket = s.client.Socket()
	health, err := s.client.Health(ctx)
	if err == nil {
		roster, err = s.client.Roster(ctx)
	}
	if err == nil {
		filled, err = s.client.Slots(ctx)
	}
	if err == nil {
		e.Daemon = fleet.DaemonInfo{Running: true, Pid: health.Pid, Version: health.Version, Since: health.Since, Socket: e.Daemon.Socket, AnsweredAt: now().Wall}
		return roster, filled, nil
	}
	if pid := s.silentDaemon(); pid != 0 {
		err = &silentError{pid: pid, socket: s.dir.Socket}
		e.Daemon.Pid = pid
	}
	e.Daemon.Error = err.Error()
	if fleet.RefusalOf(err) == nil { // as a dispatch words it
		err = fleet.Refuse(fleet.CodeDaemonUnreachable, "the daemon does not say who is there: %w", err)
	}
	return fleet.Roster{}, nil, err
}

// allowed says whether whoever calls may dispatch at all. It asks who that is rather than whether it may: a no to that is an
// event, and nothing was tried.
func (e *explanation) allowed(ctx context.Context, s *session) error {
	if memberToken(s.dir.Socket) == "" || !e.Daemon.Running {
		return nil
	}
	id, err := s.client.Whoami(ctx)
	if err == nil && !slices.Contains(id.May, "spawn") {
		err = fleet.Refuse(fleet.CodeNotAllowed, "member %s, a %s, may not spawn", id.Member, id.Role)
	}
	return err
}

// foresee says what etcd would answer to the reservation of t, where anything of it is held by other hosts too.
func (e *explanation) foresee(ctx context.Context, s *session, order fleet.Order, t fleet.Tree) error {
	if e.File.Error != "" || e.Tree == "" {
		return nil
	}
	err := s.cluster.Foresee(ctx, s.conf.LockWait, ledger.Draft{Tree: t, Role: order.Role, Profile: order.Profile, Grace: s.conf.Grace})
	if r := fleet.RefusalOf(err); r != nil && e.Holder == nil {
		switch r.Code {
		case fleet.CodeTreeOccupied:
			e.Occupancy = fleet.Taken
		case fleet.CodeTreeReserved:
			e.Occupancy = fleet.Reserved
		}
	}
	return err
}

// slotFor says whether there is a place for order, by the pool's own rule.
func slotFor(s *session, order fleet.Order, filled []fleet.Slot) error {
	if !s.conf.Limited(order.Role) {
		return nil
	}
	pool := slots.New(filled, now)
	for _, held := range filled {
		if held.State != fleet.SlotFree {
			if err := pool.Restore(held); err != nil {
				return err
			}
		}
	}
	_, err := pool.Reserve(slots.Request{Role: order.Role, Profile: order.Profile, Reservation: "explain", Tree: order.Tree})
	return err
}

// byRole groups the slots by their role, in the order of their first.
func byRole(filled []fleet.Slot) []roleReport {
	reports := []roleReport{}
	for _, sl := range filled {
		i := slices.IndexFunc(reports, func(r roleReport) bool { return r.Role == sl.Role })
		if i < 0 {
			i = len(reports)
			reports = append(reports, roleReport{Role: sl.Role})
		}
		reports[i].Slots = append(reports[i].Slots, sl)
		if sl.State == fleet.SlotFree {
			reports[i].Free++
		}
	}
	return reports
}

// advice says what to do about err, the answer that a dispatch would get.
func (e *explanation) advice(err error) []string {
	advice := []string{}
	add := func(s string) {
		if s != "" {
			advice = append(advice, s)
		}
	}
	refusal := fleet.RefusalOf(err)
	var silent *silentError
	switch {
	case err == nil:
		add("dispatch: " + commandLine("fleetdeck", "dispatch", e.Tree))
	case errors.As(err, &silent):
		add(silent.hint())
	case errors.Is(err, tree.ErrNotFound) && len(e.Entries) > 0:
		add("nobody can work there; what stands in the file for it goes with 'fleetdeck prune', or '" + commandLine("fleetdeck", "release", e.Tree) + "'")
	case refusal == nil:
	case e.Holder == nil && (refusal.Code == fleet.CodeTreeOccupied || refusal.Code == fleet.CodeTreeReserved): // it is another host's
		add(refusal.Hint)
	case refusal.Code == fleet.CodeTreeOccupied:
		add("look at it: fleetdeck screen " + e.Holder.ID)
		add("end it: fleetdeck stop " + e.Holder.ID)
	case refusal.Code == fleet.CodeTreeReserved:
		add("wait: it is listed, or the tree is free, within " + seconds(e.Holder.RemainingS))
		if e.Holder.Kind == "launch" {
			add("end it: fleetdeck stop " + e.Holder.ID)
		} else {
			guard := ""
			if e.Holder.ID != "" {
				guard = " --id " + e.Holder.ID
			}
			add("if you know that nobody comes: fleetdeck release " + e.Holder.Path + guard)
		}
	case refusal.Code == fleet.CodeDaemonUnreachable:
		add("start the daemon: fleetdeck up")
	default:
		add(refusal.Hint)
	}
	if refusal != nil && queueable(refusal.Code) {
		add("let a task wait for it: " + commandLine("fleetdeck", "dispatch", "--queue", e.Tree))
	}
	if refusal != nil && e.Holder != nil && queueable(refusal.Code) {
		add("work beside it: " + commandLine("fleetdeck", "dispatch", "--new-worktree", "BRANCH", e.Tree))
	}
	if e.Lock.Holder != nil && e.Node == "" {
		add("if the lock's holder hangs, end it: the lock goes with the process")
	}
	return advice
}
