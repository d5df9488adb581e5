package cli

import (
	"context"
	"io"
	"os"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/agent"
	"fleetdeck/fleet/api"
	"fleetdeck/fleet/client"
)

const (
	// hookPatience bounds a hook: the agent may be waiting for it.
	hookPatience = 900 * time.Millisecond
	// maxPayload bounds what of a payload is read; a larger one cannot be understood, and says nothing.
	maxPayload = 4 << 20
)

// hookMain is what an agent's hook runs: "hook AGENT", with the payload on stdin or as a further argument. It tells the daemon,
// as the member that it runs in, what the payload says. It prints nothing and never fails, whatever happens: an agent takes a
// hook's output, or its failure, for an answer.
func hookMain(args []string, began fleet.Instant) int {
	done := make(chan struct{})
	go func() {
		defer close(done)
		tellHook(args, began)
	}()
	select {
	case <-done:
	case <-time.After(hookPatience): // also where nobody closes stdin
	}
	return 0
}

func tellHook(args []string, began fleet.Instant) {
	socket, token, member := os.Getenv("FLEETDECK_SOCKET"), os.Getenv("FLEETDECK_TOKEN"), os.Getenv("FLEETDECK_MEMBER")
	if len(args) == 0 || socket == "" || token == "" || member == "" {
		return
	}
	a, ok := agent.Lookup(args[0])
	if !ok {
		return
	}
	var payload []byte
	if len(args) > 1 {
		payload = []byte(args[len(args)-1])
	} else {
		payload, _ = io.ReadAll(io.LimitReader(os.Stdin, maxPayload)) // half a payload is none
	}
	report, ok := a.Read(payload)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), hookPatience)
	defer cancel()
	_ = client.New(socket, token).Report(ctx, member, api.Report{ // there is nobody to tell of an error
		State: report.State, Message: report.Message, Source: api.SourceHook, Seq: uint64(began.Mono),
		Turn: report.Turn, Topic: report.Topic, Session: report.Session, Opens: report.Opens,
	})
}
