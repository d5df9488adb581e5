package cli

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"fleetdeck/fleet"
	"fleetdeck/fleet/foreign"
	"fleetdeck/fleet/plain"
	"fleetdeck/fleet/tree"
)

// removeGrace is how long a worktree that is being removed stays reserved if nobody can give it back any more.
const removeGrace = 10 * time.Minute

func newWorktreeCommand(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use: "worktree", Short: "linked worktrees: list and remove them",
		Long: `worktree ls lists the linked worktrees of the known repositories, and worktree rm removes one. They are made by
'fleetdeck dispatch --new-worktree'. Nothing else ever removes a tree or a branch.
` + exitHelp,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error { return usagef("worktree needs a command: ls or rm") },
	}
	cmd.AddCommand(newWorktreeListCommand(g), newWorktreeRemoveCommand(g))
	return cmd
}

// worktreeRow is one linked worktree, as `worktree ls --json` prints it.
type worktreeRow struct {
	Tree   string `json:"tree"`
	Repo   string `json:"repo"`
	Branch string `json:"branch"` // empty where HEAD is detached
	// Uncommitted says what is not committed, MergedInto which other branch has all its commits; empty means nothing, and none.
	Uncommitted string         `json:"uncommitted"`
	MergedInto  string         `json:"merged_into"`
	Occupancy   fleet.Occupied `json:"occupancy"` // empty where nobody knows, without the daemon
	Member      string         `json:"member"`
	Missing     bool           `json:"missing,omitempty"`
	Locked      bool           `json:"locked,omitempty"`
	// Error says why the worktree could not be looked at.
	Error string `json:"error,omitempty"`

	linked tree.Linked
}

func newWorktreeListCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "ls [TREE…]", Aliases: []string{"list"}, Short: "the linked worktrees of the known repositories",
		Long: `worktree ls lists linked worktrees with branch, uncommitted work, who is in them, and which other branch has all their
commits: of the repositories of all known trees, or of those that are named. It takes no lock and changes nothing.
` + exitHelp,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := g.open()
			if err != nil {
				return err
			}
			rows, err := s.worktreeRows(cmd.Context(), args)
			if err != nil {
				return err
			}
			if g.json {
				return g.printJSON(rows)
			}
			t := newTable(g.out, "WORKTREE", "BRANCH", "OCCUPANCY", "MEMBER", "UNCOMMITTED", "MERGED INTO")
			for _, r := range rows {
				branch, merged, uncommitted := r.Branch, r.MergedInto, r.Uncommitted
				if branch == "" {
					branch = "(detached)"
				}
				switch {
				case r.Missing:
					uncommitted, merged = "missing", ""
				case r.Error != "":
					uncommitted, merged = plain.Clean(r.Error, 60), ""
				case merged == "":
					merged = "NOT MERGED"
				}
				t.row(shorten(r.Tree), branch, string(r.Occupancy), r.Member, uncommitted, merged)
			}
			return t.flush()
		},
	}
}

// worktreeRows looks at the linked worktrees of the repositories of the trees at paths, or of all known trees.
func (s *session) worktreeRows(ctx context.Context, paths []string) ([]worktreeRow, error) {
	entries, err := s.ledger.Read()
	if err != nil {
		return nil, err
	}
	roster, derr := s.client.Roster(ctx)
	if derr != nil && !s.quiet {
		s.warn("the daemon does not say who is where: %v", derr)
	}
	if len(paths) == 0 {
		for _, t := range s.sources().Trees(entries, roster) {
			paths = append(paths, t.Path)
		}
	} else {
		for i, p := range paths {
			t, err := tree.Resolve(ctx, p, false)
			if err != nil {
				return nil, err
			}
			paths[i] = t.Path
		}
	}
	repos := map[string]string{} // to a tree of each
	for _, p := range paths {
		if repo, ok := tree.Repository(p); ok && repos[repo] == "" {
			repos[repo] = p
		}
	}
	rows := []worktreeRow{}
	for _, at := range repos {
		all, err := tree.LinkedOf(ctx, at)
		if err != nil {
			return nil, err
		}
		for _, l := range all {
			row := worktreeRow{Tree: l.Path, Repo: l.Main, Branch: l.Branch, Missing: l.Missing, Locked: l.Locked, linked: l}
			if h := fleet.Occupancy(l.Tree, entries, roster, now()); derr == nil {
				if row.Occupancy = h.State; h.Member != nil {
					row.Member = h.Member.ID
				}
			}
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, func(a, b worktreeRow) int { return strings.Compare(a.Tree, b.Tree) })
	lookAtAll(ctx, rows)
	return rows, ctx.Err()
}

// lookAtAll fills in what git says of each row.
func lookAtAll(ctx context.Context, rows []worktreeRow) {
	var all sync.WaitGroup
	slots := make(chan struct{}, runtime.NumCPU())
	for i := range rows {
		if rows[i].Missing {
			continue
		}
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			w, err := rows[i].linked.Look(ctx)
			rows[i].Uncommitted, rows[i].MergedInto = w.Uncommitted, w.MergedInto
			if err != nil {
				rows[i].Error = err.Error()
			}
		})
	}
	all.Wait()
}

func newWorktreeRemoveCommand(g *globals) *cobra.Command {
	var may tree.Removal
	cmd := &cobra.Command{
		Use: "rm TREE", Aliases: []string{"remove"}, Short: "remove a linked worktree", Args: exactly("TREE"),
		Long: `worktree rm removes a linked worktree. It refuses the main worktree of a repository; one that a member, a launch or a
reservation holds; one that any process has its working directory in; and one with work that would be lost: what is not
committed, or commits that no other branch has, here or of a remote. The branch stays, unless --delete-branch is given.
Files that git ignores go with the tree.
` + exitHelp,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := g.open()
			if err != nil {
				return err
			}
			l, err := s.removeWorktree(cmd.Context(), args[0], may)
			if err != nil {
				return err
			}
			if g.json {
				return g.printJSON(map[string]any{"tree": l.Path, "branch": l.Branch, "branch_deleted": may.Branch && l.Branch != "", "outcome": "removed"})
			}
			what := "its branch " + l.Branch + " stays"
			switch {
			case l.Branch == "":
				what = "it was on no branch"
			case may.Branch:
				what = "and its branch " + l.Branch
			}
			g.say("removed: %s; %s", shorten(l.Path), plain.Clean(what, -1))
			return nil
		},
	}
	f := cmd.Flags()
	f.BoolVar(&may.Uncommitted, "force-uncommitted", false, "let uncommitted work be lost")
	f.BoolVar(&may.Unmerged, "force-unmerged", false, "also with commits that no other branch has")
	f.BoolVar(&may.Branch, "delete-branch", false, "remove its branch too")
	return cmd
}

// removeWorktree removes the linked worktree that path lies in. Meanwhile it holds a reservation of the tree, as a dispatch does:
// who is in the tree, or on the way, is decided by the same rule, and nobody is sent there any more.
func (s *session) removeWorktree(ctx context.Context, path string, may tree.Removal) (l tree.Linked, err error) {
	t, err := tree.Resolve(ctx, path, false)
	if err != nil {
		return l, err
	}
	if l, err = tree.LinkedAt(ctx, t); err != nil {
		return l, err
	}
	l.Trust = s.conf.WorktreeTrust
	entry, err := s.dispatcher("fleetdeck worktree rm").Reserve(ctx, fleet.Order{Tree: t.Path, Role: fleet.RoleDev, Grace: removeGrace})
	if err != nil {
		return l, err
	}
	defer func() {
		_, _, rerr := s.ledger.Release(context.WithoutCancel(ctx), s.conf.LockWait, entry.Tree, entry.ID)
		err = errors.Join(err, rerr)
	}()
	return l, l.Remove(ctx, may, func(at string) error { return foreign.Nobody(ctx, at, l.Path) })
}
