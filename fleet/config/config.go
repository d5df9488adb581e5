// Package config is fleetdeck.toml: what it may hold, what is taken where it holds nothing, and where it is wrong.
//
// A configuration that was loaded is whole: every duration is positive, every path absolute, every name refers to
// something. Whoever has one checks nothing again.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"fleetdeck/fleet"
	"fleetdeck/fleet/agent"
)

// Defaults of what the file leaves out.
const (
	DefaultGrace     = 90 * time.Second
	DefaultLockWait  = 5 * time.Second
	DefaultPruneWait = time.Second
)

// Config is a loaded configuration.
type Config struct {
	// Path is the file, empty where there is none.
	Path      string
	Grace     time.Duration
	LockWait  time.Duration
	PruneWait time.Duration
	// Roots and Trees are absolute. Ignore are the names, or whole paths, of directories below the roots that are passed by, as
	// patterns of [filepath.Match].
	Roots    []string
	Ignore   []string
	Trees    []string
	Roles    map[fleet.Role]Role
	Profiles map[string]Profile
	Slots    []Slot
	Staff    []Staff
	Keeper   Keeper
	// MCPListen is the loopback address where the agents' tools are served over TCP; empty means nowhere.
	MCPListen string
	// WorktreeDir is the directory below which new linked worktrees go; empty means beside their repository.
	WorktreeDir string
	// WorktreeTrust lets git run, for linked worktrees, the hooks and filters that their repository names.
	WorktreeTrust bool
	// Foreign says whether to look for agents that fleetdeck did not start.
	Foreign bool
	// Launcher holds the agents of profiles that name none.
	Launcher string
	// TmuxServer is empty for a tmux server of the fleet's own, [TmuxUser], or the path of a server's socket.
	TmuxServer string
	// HerdrSocket is where herdr listens; empty means in its usual place.
	HerdrSocket string
	Console     Console
	// Cluster is nil for a fleet of one host.
	Cluster *Cluster
}

// Role is what a member of a role is told, and may ask.
type Role struct {
	// Charter is the file that holds the charter; empty means the built-in one.
	Charter string
	May     []string
}

// Profile is how an agent is run.
type Profile struct {
	Name    string
	Agent   string
	Command []string
	// Charter is the way by which the agent is handed its charter: one of the ways below.
	Charter string
	Ready   Ready
	// Args take the place of {args} in the command.
	Args []string
	// Resume takes a session up again; empty where the agent cannot.
	Resume []string
	// Hooks says how far the agent is made to report by itself.
	Hooks Hooks
	// Titles, Notices and Screens say what the agent's terminal means: the profile's own before those of the agent.
	Titles, Notices []agent.Sign
	Screens         []agent.Dialog
	// Launcher holds the agent: one of [Launchers].
	Launcher string
	// Env names variables of the daemon's environment that the agent gets beside the usual ones, or sets some ("NAME=value").
	Env []string
}

// The ways by which an agent is handed its charter. Its file is there whatever the way.
const (
	CharterArgument = "argument" // in place of {charter} in the command
	CharterFile     = "file"     // the agent reads the file
	CharterEnv      = "env"      // in $FLEETDECK_CHARTER
	CharterTyped    = "typed"    // typed into the terminal once the agent is ready, the task after it
)

// Hooks is how far an agent is made to report by itself.
type Hooks string

// The ways to have an agent report.
const (
	HooksUsual Hooks = ""     // what the agent runs without being asked
	HooksAll   Hooks = "all"  // also what its own trust gate would stop
	HooksNone  Hooks = "none" // nothing is added to its launch
)

// Ready says when a launch is listed.
type Ready struct {
	// On is "started", "output", "report" or "pattern".
	On      string
	Pattern *regexp.Regexp
}

func (r Ready) String() string {
	if r.Pattern != nil {
		return "pattern:" + r.Pattern.String()
	}
	return r.On
}

// Slot is a configured place.
type Slot struct {
	Name    string `toml:"name"`
	Role    string `toml:"role"`
	Profile string `toml:"profile"`
}

// Staff is what the keeper keeps staffed.
type Staff struct {
	Tree    string `toml:"tree"`
	Role    string `toml:"role"`
	Profile string `toml:"profile"`
	Task    string `toml:"task"`
	Restart string `toml:"restart"`
}

// file is fleetdeck.toml as it is written.
type file struct {
	Grace     string                 `toml:"grace"`
	LockWait  string                 `toml:"lock_wait"`
	PruneWait string                 `toml:"prune_wait"`
	Foreign   *bool                  `toml:"foreign"`
	Roots     []string               `toml:"roots"`
	Ignore    []string               `toml:"ignore"`
	Trees     []string               `toml:"trees"`
	Roles     map[string]fileRole    `toml:"roles"`
	Profiles  map[string]fileProfile `toml:"profiles"`
	Slots     []Slot                 `toml:"slots"`
	Staff     []Staff                `toml:"staff"`
	Keeper    fileKeeper             `toml:"keeper"`
	MCP       fileMCP                `toml:"mcp"`
	Worktrees fileWorktrees          `toml:"worktrees"`
	Launcher  string                 `toml:"launcher"`
	Tmux      fileTmux               `toml:"tmux"`
	Herdr     fileHerdr              `toml:"herdr"`
	Console   fileConsole            `toml:"console"`
	Cluster   *fileCluster           `toml:"cluster"`
}

type fileWorktrees struct {
	Dir   string `toml:"dir"`
	Trust bool   `toml:"trust"`
}

type fileMCP struct {
	Listen string `toml:"listen"`
}

type fileRole struct {
	Charter string   `toml:"charter"`
	May     []string `toml:"may"`
}

type fileProfile struct {
	Agent   string   `toml:"agent"`
	Command []string `toml:"command"`
	Charter string   `toml:"charter"`
	Ready   string   `toml:"ready"`
	Env     []string `toml:"env"`
	Args    []string `toml:"args"`
	Resume  []string `toml:"resume"`
	Hooks   *bool    `toml:"hooks"`

	Titles  []fileSign   `toml:"titles"`
	Notices []fileSign   `toml:"notices"`
	Screens []fileDialog `toml:"screens"`

	Launcher string `toml:"launcher"`
}

// Error is what is wrong in a configuration file, and where.
type Error struct {
	Path string
	Line int
	Msg  string
}

func (e *Error) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", e.Path, e.Line, e.Msg)
	}
	return fmt.Sprintf("%s: %s", e.Path, e.Msg)
}

// Locate gives the configuration file's path: the one asked for, else $FLEETDECK_CONFIG, else the usual place.
// Only the usual place may be missing.
func Locate(asked string) (path string, mustExist bool) {
	if asked != "" {
		return asked, true
	}
	if env := os.Getenv("FLEETDECK_CONFIG"); env != "" {
		return env, true
	}
	base := os.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(base) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", false
		}
		base = filepath.Join(home, ".config")
	}
	return filepath.Join(base, "fleetdeck", "fleetdeck.toml"), false
}

// Load reads the configuration that asked, the environment or the usual place names; cwd is the tree that an unconfigured
// fleet has.
func Load(asked, cwd string) (*Config, error) {
	path, mustExist := Locate(asked)
	if path != "" {
		abs, err := filepath.Abs(path)
		if err != nil {
			return nil, fmt.Errorf("configuration %s: %w", path, err)
		}
		data, err := os.ReadFile(abs)
		if err == nil {
			return Parse(abs, data)
		}
		if mustExist || !errors.Is(err, fs.ErrNotExist) {
			return nil, &Error{Path: abs, Msg: "cannot be read: " + err.Error()}
		}
	}
	return Default(cwd), nil
}

// Default is the configuration without a file: every known agent on PATH, a shell, and one architect slot for each.
func Default(cwd string) *Config {
	c := &Config{
		Grace: DefaultGrace, LockWait: DefaultLockWait, PruneWait: DefaultPruneWait,
		Roles:    map[fleet.Role]Role{},
		Profiles: map[string]Profile{},
		Launcher: LauncherEmbedded,
		Keeper:   DefaultKeeper,
		Foreign:  true,
		Console:  defaultConsole(),
	}
	if cwd != "" {
		c.Trees = []string{cwd}
	}
	c.addBuiltins()
	for _, name := range c.ProfileNames() {
		c.Slots = append(c.Slots, Slot{Name: "architect-" + name, Role: "architect", Profile: name})
	}
	return c
}

func (c *Config) addBuiltins() {
	for name, may := range map[string][]string{fleet.RoleDev: nil, "architect": {"spawn", "send", "stop"}} {
		if _, ok := c.Roles[name]; !ok {
			c.Roles[name] = Role{May: may}
		}
	}
	if len(c.Profiles) == 0 {
		for _, a := range agent.OnPath() {
			p := builtin(a)
			p.Launcher = c.Launcher
			c.Profiles[a.Name] = p
		}
	}
}

// ProfileNames are the names of the profiles, sorted, the plain shell last.
func (c *Config) ProfileNames() []string {
	names := make([]string, 0, len(c.Profiles))
	for name := range c.Profiles {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		if (a == "shell") != (b == "shell") {
			if a == "shell" {
				return 1
			}
			return -1
		}
		return strings.Compare(a, b)
	})
	return names
}

// RoleNames are the names of the roles, sorted, dev first.
func (c *Config) RoleNames() []string {
	names := make([]string, 0, len(c.Roles))
	for name := range c.Roles {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		if (a == fleet.RoleDev) != (b == fleet.RoleDev) {
			if a == fleet.RoleDev {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	return names
}

// Limited reports whether a member of role needs a slot: every role does but dev, and dev too once a slot names it.
func (c *Config) Limited(role fleet.Role) bool {
	if role != fleet.RoleDev {
		return true
	}
	return slices.ContainsFunc(c.Slots, func(s Slot) bool { return s.Role == fleet.RoleDev })
}

// Parse reads a configuration from the text of the file at path.
func Parse(path string, data []byte) (*Config, error) {
	var f file
	dec := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields()
	if err := dec.Decode(&f); err != nil {
		return nil, decodeError(path, err)
	}
	b := builder{path: path, dir: filepath.Dir(path), data: data}
	c := b.build(f)
	if len(b.errs) > 0 {
		return nil, errors.Join(b.errs...)
	}
	return c, nil
}

func decodeError(path string, err error) error {
	var strict *toml.StrictMissingError
	if errors.As(err, &strict) && len(strict.Errors) > 0 {
		var errs []error
		for _, e := range strict.Errors {
			line, _ := e.Position()
			errs = append(errs, &Error{path, line, fmt.Sprintf("unknown key %q", strings.Join(e.Key(), "."))})
		}
		return errors.Join(errs...)
	}
	var de *toml.DecodeError
	if errors.As(err, &de) {
		line, _ := de.Position()
		msg := strings.TrimPrefix(de.Error(), "toml: ")
		if key := strings.Join(de.Key(), "."); key != "" {
			msg = fmt.Sprintf("%s: %s", key, msg)
		}
		return &Error{path, line, msg}
	}
	return &Error{Path: path, Msg: err.Error()}
}
