package config

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/agent"
)

// builder turns what the file says into a Config, and gathers everything that is wrong on the way.
type builder struct {
	path, dir string
	data      []byte
	errs      []error
}

func (b *builder) fail(key, format string, args ...any) {
	b.errs = append(b.errs, &Error{b.path, b.line(key), key + ": " + fmt.Sprintf(format, args...)})
}

// line finds the line of the last part of key, where that is unmistakable. In "staff[1].tree" the table is the second
// [[staff]] of the file.
func (b *builder) line(key string) int {
	name := key[strings.LastIndexByte(key, '.')+1:]
	table, index, _ := strings.Cut(strings.TrimSuffix(key, "."+name), "[")
	skip, _ := strconv.Atoi(strings.TrimSuffix(index, "]"))
	in := table == key || table == name
	at := 0 // the table's own line: there is where a key is missing
	for i, l := range strings.Split(string(b.data), "\n") {
		l = strings.TrimSpace(l)
		if h, ok := strings.CutPrefix(l, "["); ok {
			h = strings.Trim(h, "[] ")
			in = h == table
			if h == key {
				return i + 1
			}
			if in && index != "" {
				if in = skip == 0; in {
					at = i + 1
				}
				skip--
			}
			continue
		}
		if lhs, _, ok := strings.Cut(l, "="); ok && in && strings.TrimSpace(lhs) == name {
			return i + 1
		}
	}
	return at
}

func (b *builder) build(f file) *Config {
	c := &Config{
		Path:      b.path,
		Grace:     b.duration("grace", f.Grace, DefaultGrace),
		LockWait:  b.duration("lock_wait", f.LockWait, DefaultLockWait),
		PruneWait: b.duration("prune_wait", f.PruneWait, DefaultPruneWait),
		Roles:     map[fleet.Role]Role{},
		Profiles:  map[string]Profile{},
		Slots:     f.Slots,
		Staff:     f.Staff,
		Keeper:    b.keeper(f.Keeper),
		MCPListen: b.loopback("mcp.listen", f.MCP.Listen),
		Foreign:   f.Foreign == nil || *f.Foreign,
		Console:   b.console(f.Console),
		Cluster:   b.cluster(f.Cluster),
	}
	c.Launcher = b.launcher("launcher", f.Launcher, LauncherEmbedded)
	c.TmuxServer = b.tmuxServer("tmux.server", f.Tmux.Server)
	if f.Herdr.Socket != "" {
		c.HerdrSocket = b.abs(f.Herdr.Socket)
	}
	c.WorktreeTrust = f.Worktrees.Trust
	if f.Worktrees.Dir != "" {
		c.WorktreeDir = b.abs(f.Worktrees.Dir)
	}
	for _, p := range f.Roots {
		c.Roots = append(c.Roots, b.abs(p))
	}
	for _, p := range f.Ignore {
		if strings.Contains(p, "/") {
			p = b.abs(p)
		}
		if _, err := filepath.Match(p, ""); err != nil || p == "" {
			b.fail("ignore", "%q is no pattern: use a name such as \"third_party\" or \"*.tmp\", or a path", p)
		}
		c.Ignore = append(c.Ignore, p)
	}
	for _, p := range f.Trees {
		c.Trees = append(c.Trees, b.abs(p))
	}
	for name, r := range f.Roles {
		role := Role{May: r.May}
		if r.Charter != "" {
			role.Charter = b.abs(r.Charter)
			if _, err := os.Stat(role.Charter); err != nil {
				b.fail("roles."+name+".charter", "%v", err)
			}
		}
		for _, m := range r.May {
			if !slices.Contains([]string{"spawn", "send", "stop"}, m) {
				b.fail("roles."+name+".may", "%q is unknown: use spawn, send, stop", m)
			}
		}
		if role.Charter == "" && name != fleet.RoleDev && name != "architect" {
			b.fail("roles."+name, "needs a charter: only dev and architect have one built in")
		}
		c.Roles[name] = role
	}
	for name, p := range f.Profiles {
		profile := b.profile(name, p)
		profile.Launcher = b.launcher("profiles."+name+".launcher", p.Launcher, c.Launcher)
		c.Profiles[name] = profile
	}
	c.addBuiltins()
	b.checkSlots(c)
	b.checkStaff(c)
	b.checkFence(c)
	return c
}

func (b *builder) profile(name string, p fileProfile) Profile {
	key := "profiles." + name
	out := Profile{Ready: Ready{On: "started"}}
	way := ""
	if p.Agent != "" {
		a, ok := agent.Lookup(p.Agent)
		if !ok {
			b.fail(key+".agent", "%q is no known agent: use %s, or give a command", p.Agent, strings.Join(agent.Names(), ", "))
			return out
		}
		out, way = builtin(a), a.Charter
	}
	out.Name, out.Env, out.Args = name, p.Env, p.Args
	if len(p.Command) > 0 {
		out.Command, way = p.Command, ""
	}
	if len(p.Resume) > 0 {
		out.Resume = p.Resume
	}
	b.signs(key, p, &out)
	if len(out.Command) == 0 || out.Command[0] == "" {
		b.fail(key, "needs an agent or a command")
	}
	if len(out.Command) > 0 && strings.Contains(out.Command[0], "/") {
		out.Command = slices.Clone(out.Command)
		out.Command[0] = b.abs(out.Command[0])
	}
	if len(p.Args) > 0 && !slices.Contains(out.Command, "{args}") {
		b.fail(key+".args", "the command has no {args}: write them into it")
	}
	if p.Charter != "" {
		way = p.Charter
	}
	out.Charter = b.charterWay(key+".charter", way, out.Command)
	if p.Ready != "" {
		out.Ready = b.ready(key+".ready", p.Ready)
	}
	return out
}

// charterWay is how a command that nobody says more about is handed its charter.
func charterWay(command []string) string {
	if mentions(command, "{charter}") {
		return CharterArgument
	}
	return CharterFile
}

// charterWay checks the way that was asked for against the command.
func (b *builder) charterWay(key, asked string, command []string) string {
	inCommand := mentions(command, "{charter}")
	switch asked {
	case "":
		return charterWay(command)
	case CharterFile, CharterEnv:
		return asked
	case CharterArgument:
		if !inCommand {
			b.fail(key, "the command has no {charter}")
		}
	case CharterTyped:
		if inCommand {
			b.fail(key, "the command has {charter} too: a charter is handed over once")
		}
	default:
		b.fail(key, "%q is unknown: use argument, file, env or typed", asked)
	}
	return asked
}

// mentions reports whether a part of command holds the placeholder.
func mentions(command []string, placeholder string) bool {
	return slices.ContainsFunc(command, func(arg string) bool { return strings.Contains(arg, placeholder) })
}

func (b *builder) ready(key, s string) Ready {
	switch s {
	case "started", "output", "report":
		return Ready{On: s}
	}
	if expr, ok := strings.CutPrefix(s, "pattern:"); ok {
		re, err := regexp.Compile(expr)
		if err != nil {
			b.fail(key, "%v", err)
		}
		return Ready{On: "pattern", Pattern: re}
	}
	b.fail(key, `%q is unknown: use "started", "output", "report" or "pattern:REGEX"`, s)
	return Ready{}
}

func (b *builder) checkSlots(c *Config) {
	seen := map[string]bool{}
	for i, s := range c.Slots {
		key := fmt.Sprintf("slots[%d]", i)
		switch {
		case s.Name == "":
			b.fail(key+".name", "a slot needs a name")
		case seen[s.Name]:
			b.fail(key+".name", "%q stands twice", s.Name)
		}
		seen[s.Name] = true
		if _, ok := c.Roles[s.Role]; !ok {
			b.fail(key+".role", "%q is no configured role", s.Role)
		}
		if _, ok := c.Profiles[s.Profile]; !ok {
			b.fail(key+".profile", "%q is no configured profile", s.Profile)
		}
	}
}

func (b *builder) checkStaff(c *Config) {
	seen := map[string]bool{}
	for i := range c.Staff {
		s := &c.Staff[i]
		key := fmt.Sprintf("staff[%d]", i)
		if s.Tree == "" {
			b.fail(key+".tree", "names no tree")
		}
		if node, path, ok := strings.Cut(s.Tree, ":"); c.Cluster == nil || !ok || !IsClusterName(node) || !filepath.IsAbs(path) {
			s.Tree = b.abs(s.Tree)
		}
		if seen[s.Tree] {
			b.fail(key+".tree", "%s stands twice: a tree has one worker", s.Tree)
		}
		seen[s.Tree] = true
		if s.Role == "" {
			s.Role = fleet.RoleDev
		}
		if _, ok := c.Roles[s.Role]; !ok {
			b.fail(key+".role", "%q is no configured role", s.Role)
		}
		if _, ok := c.Profiles[s.Profile]; !ok {
			b.fail(key+".profile", "%q is no configured profile", s.Profile)
		}
		if s.Restart == "" {
			s.Restart = "on-failure"
		}
		if !slices.Contains([]string{"never", "on-failure", "always"}, s.Restart) {
			b.fail(key+".restart", "%q is unknown: use never, on-failure or always", s.Restart)
		}
	}
}

func (b *builder) duration(key, s string, or time.Duration) time.Duration {
	if s == "" {
		return or
	}
	d, err := time.ParseDuration(s)
	switch {
	case err != nil:
		b.fail(key, `%q is no duration: write it like "90s"`, s)
	case d <= 0:
		b.fail(key, "%s must be more than zero", s)
	}
	return d
}

// loopback checks an address that nobody outside this host may reach: tokens travel over it in the clear.
func (b *builder) loopback(key, addr string) string {
	if addr == "" {
		return ""
	}
	host, port, err := net.SplitHostPort(addr)
	ip, iperr := netip.ParseAddr(host)
	if err != nil || port == "" || host != "localhost" && (iperr != nil || !ip.IsLoopback()) {
		b.fail(key, `%q is no address of this host's loopback: write it like "127.0.0.1:7777"`, addr)
	}
	return addr
}

// abs makes a path of the file absolute: "~" is the home directory, and a relative path is relative to the file.
func (b *builder) abs(p string) string {
	if p == "~" || strings.HasPrefix(p, "~/") {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, p[1:])
		}
	}
	if filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	return filepath.Join(b.dir, p)
}
