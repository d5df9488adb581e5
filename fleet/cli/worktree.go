package cli

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fleetdeck/fleet"
	"fleetdeck/fleet/tree"
)

// worktreeFlags ask for a linked worktree to be made first.
type worktreeFlags struct {
	branch string
	from   string
}

func (w *worktreeFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&w.branch, "new-worktree", "", "make a linked worktree on `branch` first, and dispatch there")
	cmd.Flags().StringVar(&w.from, "from", "", "`revision` at which a new branch begins (default: the tree's HEAD)")
}

// check refuses combinations that mean nothing.
func (w *worktreeFlags) check(cmd *cobra.Command) error {
	set := cmd.Flags().Changed
	switch {
	case set("new-worktree") && w.branch == "":
		return usagef("--new-worktree needs the name of a branch")
	case set("from") && !set("new-worktree"):
		return usagef("--from is where the branch of --new-worktree BRANCH begins: give that too")
	case set("from") && w.from == "":
		return usagef("--from needs a revision")
	case set("new-worktree") && set("queue"):
		return usagef("--new-worktree and --queue exclude each other: nobody is in a new worktree to be waited for")
	case set("new-worktree") && set("no-git"):
		return usagef("--new-worktree and --no-git exclude each other: only git makes worktrees")
	}
	return nil
}

// worktrees says how this fleet makes linked worktrees.
func (s *session) worktrees(from string) tree.Worktrees {
	return tree.Worktrees{Dir: s.conf.WorktreeDir, Trust: s.conf.WorktreeTrust, From: from}
}

// fate says what became of the worktree that was made for a launch that failed, once the daemon is through with it.
func (s *session) fate(ctx context.Context, out fleet.Outcome) string {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		entries, err := s.ledger.Read()
		if err == nil && !slices.ContainsFunc(entries, func(e fleet.Entry) bool { return e.ID == out.Reservation }) {
			break
		}
		select {
		case <-ctx.Done():
			return "the daemon removes the new worktree " + out.Tree + " if nothing in it is new: see 'fleetdeck events'"
		case <-time.After(20 * time.Millisecond):
		}
	}
	if _, err := os.Lstat(out.Tree); errors.Is(err, os.ErrNotExist) {
		return "the new worktree was removed again"
	}
	return "the new worktree " + out.Tree + " stays, since something in it is new or somebody is there: see 'fleetdeck events', and 'fleetdeck worktree rm'"
}

// otherWays says what else may be done about a refusal of order that another agent is the cause of.
func otherWays(code fleet.Code, order fleet.Order) string {
	ways := "or let it wait with --queue"
	if code != fleet.CodeSlotUnavailable && !order.NoGit {
		ways += ", or give it a tree of its own with --new-worktree BRANCH"
	}
	return ways
}

// addHint adds what else there is to know about r, and gives all of it.
func addHint(r *fleet.Refusal, more string) string {
	r.Hint = strings.TrimPrefix(r.Hint+"; "+more, "; ")
	return r.Hint
}
