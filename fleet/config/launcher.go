package config

import (
	"path/filepath"
	"slices"
	"strings"
)

// The launchers, by their names.
const (
	LauncherEmbedded = "embedded" // a process of fleetdeck's own for each agent
	LauncherTmux     = "tmux"     // a tmux session for each agent
	LauncherHerdr    = "herdr"    // a pane of herdr's for each agent
)

// Launchers are the names that a configuration may hold.
var Launchers = []string{LauncherEmbedded, LauncherTmux, LauncherHerdr}

// TmuxUser is the tmux server of the user's own.
const TmuxUser = "user"

type fileTmux struct {
	Server string `toml:"server"`
}

type fileHerdr struct {
	Socket string `toml:"socket"`
}

// launcher checks a launcher's name.
func (b *builder) launcher(key, name, or string) string {
	if name == "" {
		return or
	}
	if !slices.Contains(Launchers, name) {
		b.fail(key, "%q is unknown: use %s", name, strings.Join(Launchers, ", "))
	}
	return name
}

// tmuxServer gives the server that is asked for: empty for the fleet's own, [TmuxUser], or the absolute path of a socket.
func (b *builder) tmuxServer(key, server string) string {
	switch {
	case server == "" || server == "own":
		return ""
	case server == TmuxUser:
		return server
	case filepath.IsAbs(server) || strings.HasPrefix(server, "~/") || strings.HasPrefix(server, "./"):
		return b.abs(server)
	}
	b.fail(key, `%q is unknown: use "own", "user", or the path of a server's socket`, server)
	return ""
}
