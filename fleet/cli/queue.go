package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fleetdeck/fleet"
	"fleetdeck/fleet/keeper"
	"fleetdeck/fleet/launch/process"
	"fleetdeck/fleet/observe"
	"fleetdeck/fleet/plain"
	"fleetdeck/fleet/tree"
)

func newQueueCommand(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use: "queue", Short: "tasks that wait until their tree is free", Args: noArgs,
		Long: `queue keeps tasks for trees that are not free yet. The keeper sends the first of each tree once that is free; a task leaves
the queue when the daemon has accepted it. Without a command it lists them.
` + exitHelp,
		RunE: func(*cobra.Command, []string) error { return runQueueList(g) },
	}
	cmd.AddCommand(newQueueAddCommand(g), newQueueRemoveCommand(g), &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "the tasks in their order", Args: noArgs,
		Long: "ls lists the tasks in their order. It takes no lock.\n" + exitHelp,
		RunE: func(*cobra.Command, []string) error { return runQueueList(g) },
	})
	return cmd
}

func newQueueAddCommand(g *globals) *cobra.Command {
	var o orderFlags
	var task, taskFile string
	cmd := &cobra.Command{
		Use: "add TREE", Short: "put a task at the end", Args: exactly("TREE"),
		Long: "add puts a task at the end of the queue and prints its id.\n" + exitHelp,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := g.open()
			if err != nil {
				return err
			}
			order, err := o.order(s, args[0])
			if err != nil {
				return err
			}
			if order.Task, err = readTask(g.in, task, taskFile); err != nil {
				return err
			}
			added, before, err := s.enqueue(cmd.Context(), order)
			if err != nil {
				return err
			}
			if g.json {
				return g.printJSON(observe.QueueRow(added))
			}
			fmt.Fprintln(g.out, added.ID)
			s.sayQueued(cmd.Context(), added, before)
			return nil
		},
	}
	o.add(cmd)
	cmd.Flags().StringVar(&task, "task", "", "what the agent is to do")
	cmd.Flags().StringVar(&taskFile, "task-file", "", "`file` that says what the agent is to do; - is stdin")
	cmd.MarkFlagsMutuallyExclusive("task", "task-file")
	return cmd
}

// enqueue puts order into the queue. What could never be sent is refused at once.
func (s *session) enqueue(ctx context.Context, order fleet.Order) (added keeper.Task, before int, err error) {
	if err := s.may("spawn")(ctx); err != nil {
		return added, 0, err
	}
	t, err := tree.Resolve(ctx, order.Tree, order.NoGit)
	if err != nil {
		return added, 0, err
	}
	if err := s.configured(order); err != nil {
		return added, 0, err
	}
	queue, err := keeper.OpenQueue(s.dir.Path)
	if err != nil {
		return added, 0, err
	}
	return queue.Add(ctx, keeper.Task{
		Tree: t.Path, Role: order.Role, Profile: order.Profile, Task: order.Task, Grace: order.Grace, NoGit: order.NoGit,
		BesideForeign: order.BesideForeign,
	}, process.Now())
}

// configured refuses an order for a profile or a role that the configuration does not know.
func (s *session) configured(order fleet.Order) error {
	if _, ok := s.conf.Profiles[order.Profile]; !ok {
		return fleet.Refuse(fleet.CodeProfileUnknown, "profile %q is not configured", order.Profile).
			WithHint("there are: %s", strings.Join(s.conf.ProfileNames(), ", "))
	}
	if _, ok := s.conf.Roles[order.Role]; !ok {
		return fleet.Refuse(fleet.CodeRoleUnknown, "role %q is not configured", order.Role).
			WithHint("there are: %s", strings.Join(s.conf.RoleNames(), ", "))
	}
	return nil
}

// sayQueued tells a person on stderr, beside what scripts read.
func (s *session) sayQueued(ctx context.Context, t keeper.Task, before int) {
	if s.quiet {
		return
	}
	fmt.Fprintf(s.err, "fleetdeck: queued for %s as %s, %d before it\n", plain.Clean(shorten(t.Tree), -1), t.ID, before)
	if s.keptByNobody(ctx) {
		fmt.Fprintln(s.err, "fleetdeck: hint: nobody works it off until 'fleetdeck up' or 'fleetdeck keep' runs")
	}
}

func runQueueList(g *globals) error {
	s, err := g.open()
	if err != nil {
		return err
	}
	queue, err := keeper.OpenQueue(s.dir.Path)
	if err != nil {
		return err
	}
	tasks, err := queue.List()
	if err != nil {
		return err
	}
	rows := make([]fleet.QueueRow, len(tasks))
	for i, t := range tasks {
		rows[i] = observe.QueueRow(t)
	}
	if g.json {
		return g.printJSON(rows)
	}
	now := time.Now()
	t := newTable(g.out, "ID", "TREE", "ROLE", "PROFILE", "STATE", "AGE", "TASK", "ERROR")
	for _, r := range rows {
		task := []rune(r.Task)
		if len(task) > 60 {
			task = append(task[:59], '…')
		}
		t.row(r.ID, shorten(r.Tree), r.Role, r.Profile, r.State, age(r.AddedAt, now), string(task), r.Error)
	}
	return t.flush()
}

func newQueueRemoveCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "rm ID", Aliases: []string{"remove"}, Short: "take a task out", Args: exactly("ID"),
		Long: `rm takes a task out of the queue. It is named by its id, or the end of it (four letters or more). One that is being sent at this
moment may be started all the same: rm says so.
` + exitHelp,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := g.open()
			if err != nil {
				return err
			}
			queue, err := keeper.OpenQueue(s.dir.Path)
			if err != nil {
				return err
			}
			id, err := findTask(queue, args[0])
			if err != nil {
				return err
			}
			t, err := s.unqueue(cmd.Context(), queue, id)
			if err != nil {
				return err
			}
			if g.json {
				return g.printJSON(observe.QueueRow(t))
			}
			g.say("removed: %s of %s", t.ID, shorten(t.Tree))
			if t.Reservation != "" {
				g.say("it was being sent under reservation %s: see 'fleetdeck trees' for whether it was started", t.Reservation)
			}
			return nil
		},
	}
}

// unqueue takes the task id out of the queue.
func (s *session) unqueue(ctx context.Context, queue *keeper.Queue, id string) (keeper.Task, error) {
	if err := s.may("spawn")(ctx); err != nil {
		return keeper.Task{}, err
	}
	t, err := queue.Remove(ctx, id)
	if errors.Is(err, keeper.ErrNoTask) {
		return t, &notFoundError{fmt.Sprintf("task %s is gone already", id), "see 'fleetdeck members'"}
	}
	return t, err
}

// findTask finds the id that name is, or is the end of.
func findTask(queue *keeper.Queue, name string) (string, error) {
	tasks, err := queue.List()
	if err != nil {
		return "", err
	}
	var found []string
	for _, t := range tasks {
		switch {
		case t.ID == name:
			return t.ID, nil
		case len(name) >= 4 && strings.HasSuffix(t.ID, strings.ToUpper(name)):
			found = append(found, t.ID)
		}
	}
	switch len(found) {
	case 0:
		return "", &notFoundError{fmt.Sprintf("no task %s in the queue", name), "see 'fleetdeck queue ls'"}
	case 1:
		return found[0], nil
	}
	return "", usagef("%s is the end of %d tasks: %s", name, len(found), strings.Join(found, ", "))
}
