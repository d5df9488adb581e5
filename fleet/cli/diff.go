package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"fleetdeck/fleet/plain"
	"fleetdeck/fleet/tree"
)

// maxDiff is how much of a tree's changes is printed.
const maxDiff = 16 << 20

func newDiffCommand(g *globals) *cobra.Command {
	var stat bool
	cmd := &cobra.Command{
		Use: "diff TREE", Short: "what is changed in a tree", Args: exactly("TREE"),
		Long: `diff prints what differs from HEAD in a tree, then the names of untracked files. No pager is opened, and no program that the
repository names is run to show it. On a terminal, what is no printable text is left out; elsewhere it is printed as it
stands, so that 'git apply' takes it.
` + exitHelp,
		RunE: func(cmd *cobra.Command, args []string) error { return runDiff(cmd.Context(), g, args[0], stat) },
	}
	cmd.Flags().BoolVar(&stat, "stat", false, "a line for each file only")
	return cmd
}

func runDiff(ctx context.Context, g *globals, path string, stat bool) error {
	t, err := tree.Resolve(ctx, path, false)
	if err != nil {
		return err
	}
	of := tree.Diff
	if stat {
		of = tree.DiffStat
	}
	text, err := of(ctx, t.Path, maxDiff)
	if err != nil {
		return err
	}
	if g.json {
		return g.printJSON(map[string]string{"tree": t.Path, "diff": text})
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
