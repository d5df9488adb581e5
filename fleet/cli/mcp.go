package cli

import (
	"context"
	"errors"
	"io"
	"os"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"fleetdeck/fleet/mcp"
)

func newMCPCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "mcp", Short: "the fleet as tools for agents, on stdio", Args: noArgs,
		Long: `mcp is a server of the Model Context Protocol on stdin and stdout, with the tools fleet_spawn, fleet_list, fleet_whoami,
fleet_report, fleet_send and fleet_stop. Inside an agent that fleetdeck started it acts as that member, and may do what the
member's role may; elsewhere it acts as you. The daemon serves the same tools over HTTP at /mcp of its socket.
` + exitHelp,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := g.open()
			if err != nil {
				return err
			}
			server := mcp.New(mcp.Fleet{
				Client: s.client, Dispatcher: s.dispatcher("fleetdeck mcp"), Profile: s.conf.ProfileNames()[0], Version: g.build.String(),
			})
			err = server.Run(cmd.Context(), &sdk.StdioTransport{})
			if errors.Is(err, io.EOF) || errors.Is(err, context.Canceled) {
				return nil // the client hung up, or a signal came
			}
			return err
		},
	}
}

// may asks whether the member that this program runs in may do what; the operator may.
func (s *session) may(what string) func(context.Context) error {
	return func(ctx context.Context) error { return s.client.May(ctx, what) }
}

// memberToken is the token of the member that this program runs in, if the daemon at socket is the one that started it.
// With it, every call is that member's and its role decides.
func memberToken(socket string) string {
	own := os.Getenv("FLEETDECK_SOCKET")
	if own == socket {
		return os.Getenv("FLEETDECK_TOKEN")
	}
	a, aerr := os.Stat(own)
	b, berr := os.Stat(socket)
	if aerr == nil && berr == nil && os.SameFile(a, b) {
		return os.Getenv("FLEETDECK_TOKEN")
	}
	return ""
}
