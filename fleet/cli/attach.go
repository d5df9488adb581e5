package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"fleetdeck/fleet/attach"
	"fleetdeck/fleet/launch/embedded"
)

func newAttachCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "attach MEMBER", Short: "a member's live terminal", Args: exactly("MEMBER"),
		Long: `attach takes over the terminal and shows a member's, live: what you type goes to the agent, and ctrl-] detaches. What the agent
prints is drawn from an emulated screen, so that it cannot change your terminal. Several may attach to one member.
` + exitHelp,
		RunE: g.anywhere(func(cmd *cobra.Command, args []string) error {
			s, err := g.open()
			if err != nil {
				return err
			}
			if !canDraw() {
				return usagef("attach needs a terminal: use 'fleetdeck screen' or 'fleetdeck logs'")
			}
			if err := s.may("send")(cmd.Context()); err != nil {
				return err
			}
			id, err := s.findTerminal(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			exe, err := os.Executable()
			if err != nil {
				return err
			}
			// The terminal outlives the daemon, so it is asked itself.
			term, err := embedded.New(exe).Find(cmd.Context(), id, filepath.Join(s.dir.Path, "members", id))
			if err != nil {
				return fmt.Errorf("attach to %s: %w", id, err)
			}
			result, err := attach.Run(cmd.Context(), term, attach.Options{Stdin: os.Stdin, Stdout: os.Stdout, Name: id})
			if err != nil {
				return fmt.Errorf("attach to %s: %w", id, err)
			}
			g.say("%s", result)
			return nil
		}, "send"),
	}
}

// findTerminal finds the member that name means; without a daemon it must be the whole id.
func (s *session) findTerminal(ctx context.Context, name string) (string, error) {
	return s.findOrElsewhere(ctx, name, func(name string) (string, error) {
		id, err := s.findHere(ctx, name, true)
		if unreachable(err) {
			if _, serr := os.Stat(filepath.Join(s.dir.Path, "members", filepath.Base(name))); serr == nil {
				return filepath.Base(name), nil
			}
		}
		return id, err
	})
}
