package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"fleetdeck/fleet/plain"
	"fleetdeck/fleet/tree"
)

// maxDiff is how much of a tree's changes is printed.
const maxDiff = 16 << 20

// diffOptions are the flags of diff.
type diffOptions struct {
	stat    bool
	commits bool
	base    string
}

func newDiffCommand(g *globals) *cobra.Command {
	var o diffOptions
	cmd := &cobra.Command{
		Use: "diff TREE", Short: "what is changed in a tree", Args: exactly("TREE"),
		Long: `diff prints what differs from HEAD in a tree, then the names of untracked files. No pager is opened, and no program that the
repository names is run to show it. On a terminal, what is no printable text is left out; elsewhere it is printed as it
stands, so that 'git apply' takes it.

With --commits it prints what differs from where the branch began, its commits first: a line that says since when, and one for each
commit. That is where HEAD left --base, or else the branch's upstream, the default branch of origin, the branch of the main
worktree, main, or master.
` + exitHelp,
		RunE: g.anywhere(func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("base") {
				if o.base == "" {
					return usagef("--base: name a commit or a branch")
				}
				o.commits = true
			}
			path, err := g.treeHere(args[0])
			if err != nil {
				return err
			}
			return runDiff(cmd.Context(), g, path, o)
		}),
	}
	cmd.Flags().BoolVar(&o.stat, "stat", false, "a line for each file only")
	cmd.Flags().BoolVar(&o.commits, "commits", false, "all since the branch began, its commits first")
	cmd.Flags().StringVar(&o.base, "base", "", "the `commit` or branch that --commits compares with, which it implies")
	return cmd
}

func runDiff(ctx context.Context, g *globals, path string, o diffOptions) error {
	t, err := tree.Resolve(ctx, path, false)
	if err != nil {
		return err
	}
	of := tree.Diff
	if o.stat {
		of = tree.DiffStat
	}
	var since tree.Since
	if o.commits {
		if since, err = sinceBase(ctx, t.Path, o.base); err != nil {
			return err
		}
		if of = since.Diff; o.stat {
			of = since.DiffStat
		}
	}
	text, err := of(ctx, t.Path, maxDiff)
	if err != nil {
		return err
	}
	if g.json {
		return g.printJSON(struct {
			Tree string `json:"tree"`
			Diff string `json:"diff"`
			Base string `json:"base,omitempty"`
		}{t.Path, text, since.Commit})
	}
	if !isTerminal(g.out) {
		_, err := io.WriteString(g.out, text)
		return err
	}
	for line := range strings.Lines(text) {
		line = strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\t", "        ")
		if _, err := fmt.Fprintln(g.out, plain.Clean(line, -1)); err != nil {
			return err
		}
	}
	return nil
}

// sinceBase finds where the branch of a tree began. That it cannot be found, or that base is none, is a wrong call.
func sinceBase(ctx context.Context, path, base string) (tree.Since, error) {
	since, err := tree.SinceBase(ctx, path, base)
	if errors.Is(err, tree.ErrNoBase) {
		return since, usagef("%w; name a commit or a branch with --base", err)
	}
	if err != nil && base != "" && ctx.Err() == nil {
		return since, &usageError{err}
	}
	return since, err
}
