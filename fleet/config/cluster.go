package config

import (
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"fleetdeck/fleet"
)

// Cluster says where the reservations of a fleet of many hosts stand, and who this host is in it.
type Cluster struct {
	// Endpoints are URLs of etcd nodes, all of one scheme.
	Endpoints []string
	Fleet     string
	Node      string
	// CA, Cert and Key are PEM files: whom to believe, and this host's certificate. Without a CA those of the system count.
	CA, Cert, Key string
	// Username and PasswordFile are set both or neither.
	Username, PasswordFile string
	// SSH is the call that gets to another host, before the host's name, and SSHFleetdeck the program there. Hosts are the names by
	// which ssh knows nodes, where it is not the node's own.
	SSH          []string
	SSHFleetdeck string
	Hosts        map[string]string
	// Spaces are the roots of file systems that hosts share, by the name that all of them use.
	Spaces map[string]string
	// SelfFence is for how long a member that fills a slot goes on without etcd's word; zero fences nobody.
	SelfFence time.Duration
}

// DefaultFleet names a fleet that the file gives no name.
const DefaultFleet = "default"

type fileCluster struct {
	Endpoints    []string `toml:"endpoints"`
	Fleet        string   `toml:"fleet"`
	Node         string   `toml:"node"`
	CA           string   `toml:"ca"`
	Cert         string   `toml:"cert"`
	Key          string   `toml:"key"`
	Username     string   `toml:"username"`
	PasswordFile string   `toml:"password_file"`

	SSH          []string          `toml:"ssh"`
	SSHFleetdeck string            `toml:"ssh_fleetdeck"`
	Hosts        map[string]string `toml:"hosts"`
	Spaces       map[string]string `toml:"spaces"`
	SelfFence    string            `toml:"self_fence"`
}

// clusterName is what can be part of a key, and be told from a path in NODE:PATH.
var clusterName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// IsClusterName reports whether s can name a fleet or a node.
func IsClusterName(s string) bool { return clusterName.MatchString(s) }

// cluster checks [cluster]; a file without one has a fleet of one host.
func (b *builder) cluster(f *fileCluster) *Cluster {
	if f == nil {
		return nil
	}
	c := &Cluster{Endpoints: f.Endpoints, Fleet: f.Fleet, Node: f.Node, Username: f.Username}
	if c.Fleet == "" {
		c.Fleet = DefaultFleet
	}
	if c.Node == "" {
		host, err := os.Hostname()
		if err != nil {
			b.fail("cluster.node", "this host has no name to take: %v", err)
		}
		c.Node = host
	}
	for key, name := range map[string]string{"cluster.fleet": c.Fleet, "cluster.node": c.Node} {
		if !IsClusterName(name) {
			b.fail(key, "%q is no name: use letters, digits, '.', '_' and '-'", name)
		}
	}
	b.ssh(c, f)
	c.Spaces = b.spaces(f.Spaces)
	secure, loopback := b.endpoints(c.Endpoints)
	file := func(key, path string) string {
		if path == "" {
			return ""
		}
		path = b.abs(path)
		if _, err := os.Stat(path); err != nil {
			b.fail(key, "%v", err)
		}
		return path
	}
	c.CA, c.Cert, c.Key = file("cluster.ca", f.CA), file("cluster.cert", f.Cert), file("cluster.key", f.Key)
	c.PasswordFile = file("cluster.password_file", f.PasswordFile)
	switch {
	case (f.Cert == "") != (f.Key == ""):
		b.fail("cluster.cert", "a certificate and its key go together: set cert and key")
	case !secure && (f.CA != "" || f.Cert != ""):
		b.fail("cluster.endpoints", "certificates are for https:// only")
	}
	switch {
	case (f.Username == "") != (f.PasswordFile == ""):
		b.fail("cluster.username", "a user and a password go together: set username and password_file")
	case f.Username != "" && !secure && !loopback:
		b.fail("cluster.endpoints", "a password would travel in the clear: use https://")
	}
	c.SelfFence = b.duration("cluster.self_fence", f.SelfFence, 0)
	return c
}

// checkFence makes sure that an agent with a fence is gone before its slot is, and is held by what can end it.
func (b *builder) checkFence(c *Config) {
	const key = "cluster.self_fence"
	if c.Cluster == nil || c.Cluster.SelfFence <= 0 {
		return
	}
	if err := fleet.CheckFence(c.Cluster.SelfFence); err != nil {
		b.fail(key, "%v", err)
	}
	for _, s := range c.Slots {
		if p, ok := c.Profiles[s.Profile]; ok && p.Launcher != LauncherEmbedded {
			b.fail(key, "slot %s is for profile %s, whose agents are held in %s: only what the launcher %q holds ends for certain when nobody is left to end it", s.Name, s.Profile, p.Launcher, LauncherEmbedded)
		}
	}
}

var (
	// sshHost is a destination of ssh that is no option, and one word: name, address, or user@name.
	sshHost = regexp.MustCompile(`^[A-Za-z0-9_][^\s\x00-\x1f'"\x60$\\;&|<>]*$`)
	// sshProgram is one that no shell makes anything else of.
	sshProgram = regexp.MustCompile(`^[A-Za-z0-9_./~][A-Za-z0-9_./@%+:,-]*$`)
)

// ssh checks how to get to other hosts.
func (b *builder) ssh(c *Cluster, f *fileCluster) {
	c.SSH, c.SSHFleetdeck, c.Hosts = f.SSH, f.SSHFleetdeck, f.Hosts
	if c.SSH == nil {
		c.SSH = []string{"ssh"}
	}
	if len(c.SSH) == 0 || c.SSH[0] == "" {
		b.fail("cluster.ssh", `names no program: write it like ["ssh", "-F", "/etc/fleetdeck/ssh_config"]`)
	}
	if c.SSHFleetdeck == "" {
		c.SSHFleetdeck = "fleetdeck"
	}
	if !sshProgram.MatchString(c.SSHFleetdeck) {
		b.fail("cluster.ssh_fleetdeck", "%q is read by the other host's shell: use a plain name or path", c.SSHFleetdeck)
	}
	for node, host := range c.Hosts {
		switch key := "cluster.hosts." + node; {
		case !IsClusterName(node):
			b.fail(key, "%q is no name of a node", node)
		case !sshHost.MatchString(host):
			b.fail(key, "%q is no host for ssh: use a name, an address, or user@name", host)
		}
	}
}

// spaces checks the roots of shared file systems: none lies in another, so that a tree is in one at most.
func (b *builder) spaces(f map[string]string) map[string]string {
	var spaces map[string]string
	for _, name := range slices.Sorted(maps.Keys(f)) {
		key, root := "cluster.spaces."+name, f[name]
		switch {
		case !IsClusterName(name):
			b.fail(key, "%q is no name: use letters, digits, '.', '_' and '-'", name)
		case root == "":
			b.fail(key, "names no directory")
		}
		root = b.abs(root)
		for other, its := range spaces {
			if within(root, its) || within(its, root) {
				b.fail(key, "%s and %s, of %s, lie in each other: a tree is in one space at most", root, its, other)
			}
		}
		if spaces == nil {
			spaces = map[string]string{}
		}
		spaces[name] = root
	}
	return spaces
}

// within reports whether path is dir, or lies below it.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

// endpoints checks the URLs, and says whether they are of TLS, and whether nobody but this host can listen.
func (b *builder) endpoints(urls []string) (secure, loopback bool) {
	const key = "cluster.endpoints"
	if len(urls) == 0 {
		b.fail(key, `needs the etcd nodes: write them like ["https://10.0.0.1:2379"]`)
		return false, false
	}
	loopback = true
	for i, s := range urls {
		u, err := url.Parse(s)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Port() == "" || u.Hostname() == "" || u.Path != "" || u.User != nil || u.RawQuery != "" {
			b.fail(key, `%q is no end point: write it like "https://10.0.0.1:2379"`, s)
			continue
		}
		if i > 0 && secure != (u.Scheme == "https") {
			b.fail(key, "%s is of another scheme than those before it", s)
		}
		secure = u.Scheme == "https"
		ip := net.ParseIP(u.Hostname())
		loopback = loopback && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback())
	}
	return secure, loopback
}
