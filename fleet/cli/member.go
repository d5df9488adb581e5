package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"

	"fleetdeck/fleet"
	"fleetdeck/fleet/api"
	"fleetdeck/fleet/client"
	"fleetdeck/fleet/plain"
)

// find finds the member that name means: its id, the end of one that is unmistakable, or a tree that it holds, by any path of
// it. With launches, one that is still booting is found too. One of another host is an elsewhereError.
func (s *session) find(ctx context.Context, name string, launches bool) (string, error) {
	return s.findOrElsewhere(ctx, name, func(name string) (string, error) { return s.findHere(ctx, name, launches) })
}

// findHere is find among this host's members.
func (s *session) findHere(ctx context.Context, name string, launches bool) (string, error) {
	roster, err := s.client.Roster(ctx)
	if err != nil {
		return "", err
	}
	var byEnd, byTree []string
	named := sync.OnceValue(func() fleet.Tree { return treeNamed(ctx, name) })
	consider := func(id string, holds func(fleet.Tree) bool, alive bool) bool {
		if strings.EqualFold(id, name) {
			return true
		}
		if len(name) >= 4 && strings.HasSuffix(id, strings.ToUpper(name)) {
			byEnd = append(byEnd, id)
		}
		if alive && holds(named()) {
			byTree = append(byTree, id)
		}
		return false
	}
	for _, m := range roster.Members {
		if consider(m.ID, m.Holds, m.Alive()) {
			return m.ID, nil
		}
	}
	if launches {
		for _, l := range roster.Launches {
			if consider(l.ID, l.Holds, true) {
				return l.ID, nil
			}
		}
	}
	switch {
	case len(byEnd) == 1:
		return byEnd[0], nil
	case len(byEnd) > 1:
		return "", usagef("%s means more than one member: %s", name, strings.Join(byEnd, ", "))
	case len(byTree) == 1:
		return byTree[0], nil
	}
	return "", &notFoundError{"no such member: " + plain.Clean(name, 80), "see 'fleetdeck members': a member is named by its id, the end of it, or its tree"}
}

func newScreenCommand(g *globals) *cobra.Command {
	var styled bool
	cmd := &cobra.Command{
		Use: "screen MEMBER", Short: "a member's screen as text", Args: exactly("MEMBER"),
		Long: "screen prints what a member's terminal shows; --color with its colours. With --json the cursor and the title too.\n" + exitHelp,
		RunE: g.anywhere(func(cmd *cobra.Command, args []string) error {
			s, err := g.open()
			if err != nil {
				return err
			}
			id, err := s.find(cmd.Context(), args[0], true)
			if err != nil {
				return err
			}
			screen, err := s.client.Screen(cmd.Context(), id, 0)
			if err != nil {
				return err
			}
			if g.json {
				return g.printJSON(screen)
			}
			lines := screen.Lines
			if styled && !g.noColor && os.Getenv("NO_COLOR") == "" {
				lines = screen.Styled
			}
			last := len(screen.Lines)
			for last > 0 && strings.TrimSpace(screen.Lines[last-1]) == "" {
				last--
			}
			for _, l := range lines[:min(last, len(lines))] {
				fmt.Fprintln(g.out, strings.TrimRight(l, " "))
			}
			return nil
		}),
	}
	cmd.Flags().BoolVar(&styled, "color", false, "with colours")
	return cmd
}

func newSendCommand(g *globals) *cobra.Command {
	var noEnter bool
	cmd := &cobra.Command{
		Use: "send MEMBER TEXT…", Short: "type a line to a member",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usagef("send needs MEMBER and TEXT (TEXT - is stdin)")
			}
			return nil
		},
		Long: "send types TEXT into a member's terminal and presses return. TEXT - reads it from stdin.\n" + exitHelp,
		RunE: g.anywhere(func(cmd *cobra.Command, args []string) error {
			s, err := g.open()
			if err != nil {
				return err
			}
			text := strings.Join(args[1:], " ")
			if text == "-" {
				data, err := io.ReadAll(io.LimitReader(g.in, api.MaxTask))
				if err != nil {
					return fmt.Errorf("read stdin: %w", err)
				}
				text = strings.TrimSuffix(string(data), "\n")
			}
			id, err := s.find(cmd.Context(), args[0], true)
			if err != nil {
				return withText(err, text+"\n", "-")
			}
			if err := s.client.Send(cmd.Context(), id, text, !noEnter); err != nil {
				return err
			}
			g.say("sent to %s", id)
			return nil
		}, "send"),
	}
	cmd.Flags().BoolVar(&noEnter, "no-enter", false, "do not press return")
	return cmd
}

func newLogsCommand(g *globals) *cobra.Command {
	var follow, raw bool
	cmd := &cobra.Command{
		Use: "logs MEMBER", Short: "a member's output", Args: exactly("MEMBER"),
		Long: `logs prints what a member printed, as far back as its log goes, without the escape sequences: what an agent prints is
never passed to your terminal as it stands. --raw passes the bytes as they are, for a file or a pipe.
` + exitHelp,
		RunE: g.anywhere(func(cmd *cobra.Command, args []string) error {
			s, err := g.open()
			if err != nil {
				return err
			}
			if raw && isTerminal(g.out) {
				return usagef("--raw does not print to a terminal: what an agent prints could change it")
			}
			id, err := s.find(cmd.Context(), args[0], true)
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			log, err := s.client.Log(ctx, id, follow)
			if err != nil {
				return err
			}
			defer log.Close()
			if raw {
				_, err = io.Copy(g.out, log)
			} else {
				err = copyPlain(g.out, log)
			}
			if errors.Is(err, context.Canceled) {
				return nil
			}
			return err
		}),
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what it prints from now on")
	cmd.Flags().BoolVar(&raw, "raw", false, "the bytes as they are")
	return cmd
}

// copyPlain copies lines of printable text, and nothing that could move a cursor.
func copyPlain(w io.Writer, r io.Reader) error {
	lines := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			text := strings.TrimRight(line, "\r\n")
			if i := strings.LastIndexByte(text, '\r'); i >= 0 {
				text = text[i+1:] // what a progress bar wrote over is gone
			}
			if _, werr := fmt.Fprintln(w, plain.Text(ansi.Strip(text))); werr != nil {
				return werr
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func newStopCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "stop MEMBER", Short: "end a member", Args: exactly("MEMBER"),
		Long: `stop ends a member, or a launch, with every process that it started: TERM first, then KILL. It returns once they are gone.
` + exitHelp,
		RunE: g.anywhere(func(cmd *cobra.Command, args []string) error {
			s, err := g.open()
			if err != nil {
				return err
			}
			id, err := s.find(cmd.Context(), args[0], true)
			if err != nil {
				return err
			}
			if err := s.client.Stop(cmd.Context(), id); err != nil {
				return err
			}
			g.say("stopped: %s", id)
			return nil
		}, "stop"),
	}
}

// agentClient speaks to the daemon as the agent that this runs in.
func agentClient() (*client.Client, error) {
	socket, token := os.Getenv("FLEETDECK_SOCKET"), os.Getenv("FLEETDECK_TOKEN")
	if socket == "" || token == "" {
		return nil, usagef("this is for an agent that fleetdeck started: $FLEETDECK_SOCKET and $FLEETDECK_TOKEN are not set")
	}
	return client.New(socket, token), nil
}

func newReportCommand(g *globals) *cobra.Command {
	var message string
	cmd := &cobra.Command{
		Use: "report STATE", Short: "for an agent: what it is doing", Args: exactly("STATE"),
		ValidArgs: []string{"working", "idle", "waiting", "done"},
		Long: `report says, for the agent that calls it, what it is doing: working, idle, waiting (a person must answer) or done.
` + exitHelp,
		RunE: func(cmd *cobra.Command, args []string) error {
			state := fleet.State(args[0])
			if !state.Reportable() {
				return usagef("state %q is unknown: use working, idle, waiting or done", args[0])
			}
			c, err := agentClient()
			if err != nil {
				return err
			}
			return c.Report(cmd.Context(), os.Getenv("FLEETDECK_MEMBER"), api.Report{State: state, Message: message})
		},
	}
	cmd.Flags().StringVarP(&message, "message", "m", "", "what to tell the operator")
	return cmd
}
