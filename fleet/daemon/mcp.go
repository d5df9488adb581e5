package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/client"
	"fleetdeck/fleet/dispatch"
	"fleetdeck/fleet/mcp"
	"fleetdeck/fleet/tree"
)

// mcpHandler serves the agents' tools. They call the daemon over its own socket with the caller's token: what a tool may do is
// decided where everybody's calls are.
func (d *Daemon) mcpHandler() http.Handler {
	operator := client.New(d.State.Socket, "")
	profile := ""
	if names := d.Config.ProfileNames(); len(names) > 0 {
		profile = names[0]
	}
	return mcp.Handler(func(token string) mcp.Fleet {
		c, now := operator.As(token), d.Now()
		return mcp.Fleet{Client: c, Profile: profile, Version: d.Version, Dispatcher: &dispatch.Dispatcher{
			Ledger: d.Ledger, Daemon: c, LockWait: d.Config.LockWait, Grace: d.Config.Grace, Now: d.Now,
			Allowed:   func(ctx context.Context) error { return c.May(ctx, "spawn") },
			Worktrees: tree.Worktrees{Dir: d.Config.WorktreeDir, Trust: d.Config.WorktreeTrust},
			Self:      fleet.Dispatcher{Pid: os.Getpid(), Host: now.Host, Program: "fleetdeck mcp", Machine: now.Machine},
		}}
	})
}

// serveMCP serves the tools, and nothing else, on the TCP address that is configured. Any user of this host can connect there,
// so every request needs a member's token.
func (d *Daemon) serveMCP() error {
	if d.Config.MCPListen == "" {
		return nil
	}
	listener, err := net.Listen("tcp", d.Config.MCPListen)
	if err != nil {
		return fmt.Errorf("serve MCP on %s: %w: choose another address in [mcp]", d.Config.MCPListen, err)
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", d.guardTCP(whole(bodyTimeout, d.mcpHandler())))
	server := &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    16 << 10,
		BaseContext:       func(net.Listener) context.Context { return d.ctx },
	}
	d.tending.Go(func() {
		if err := server.Serve(few(listener, maxStrangers)); !errors.Is(err, http.ErrServerClosed) {
			d.Log("MCP on %s: %v", d.Config.MCPListen, err)
		}
	})
	d.Log("MCP on http://%s/mcp", listener.Addr())
	context.AfterFunc(d.ctx, func() { server.Close() })
	return nil
}

// guardTCP lets through what comes with a live member's token and from no web page of another host. A web page that has its own
// name resolve to this host is turned away by the tools' handler, which answers on the loopback to loopback names only.
func (d *Daemon) guardTCP(next http.Handler) http.Handler {
	guarded := http.NewCrossOriginProtection().Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Until the token is known nothing is waited for.
		http.NewResponseController(w).SetReadDeadline(time.Now().Add(headerTimeout))
		caller, err := d.caller(r)
		if err == nil && caller == nil {
			err = fleet.Refuse(fleet.CodeNotAllowed, "a member's token is needed: Authorization: Bearer TOKEN")
		}
		if err != nil {
			d.turnedAway(r, err)
			w.Header().Set("WWW-Authenticate", "Bearer")
			writeJSON(w, http.StatusUnauthorized, fleet.RefusalOf(err))
			return
		}
		guarded.ServeHTTP(w, r)
	})
}

// turnedAway makes a call loud that came with no or a wrong token.
func (d *Daemon) turnedAway(r *http.Request, err error) {
	d.events.add("warn", "not_allowed", "", "", "%s %s was refused: %v", r.Method, r.URL.Path, err)
}

// getMay answers whether the caller may do something, before it does the part of it that is not the daemon's. A no is as loud as
// that of the deed itself.
func (d *Daemon) getMay(w http.ResponseWriter, r *http.Request) error {
	caller, err := d.caller(r)
	if err != nil {
		return err
	}
	if err := d.allow(caller, r.PathValue("what")); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, struct{}{})
}
