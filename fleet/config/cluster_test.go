package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAFileWithoutAClusterIsOfOneHost(t *testing.T) {
	c, err := Parse("/etc/fleetdeck.toml", nil)
	if err != nil || c.Cluster != nil {
		t.Errorf("cluster %+v, %v, want none", c.Cluster, err)
	}
}

func TestAClusterIsTakenWholeAndItsPathsMadeAbsolute(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"ca.pem", "kite.pem", "kite.key", "password"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := Parse(filepath.Join(dir, "fleetdeck.toml"), []byte(`
[cluster]
endpoints = ["https://10.0.0.1:2379", "https://10.0.0.2:2379"]
fleet = "web"
node = "kite"
ca = "ca.pem"
cert = "kite.pem"
key = "kite.key"
username = "web"
password_file = "password"
`))
	if err != nil {
		t.Fatal(err)
	}
	want := &Cluster{
		Endpoints: []string{"https://10.0.0.1:2379", "https://10.0.0.2:2379"}, Fleet: "web", Node: "kite", Username: "web",
		CA: filepath.Join(dir, "ca.pem"), Cert: filepath.Join(dir, "kite.pem"), Key: filepath.Join(dir, "kite.key"), PasswordFile: filepath.Join(dir, "password"),
		SSH: []string{"ssh"}, SSHFleetdeck: "fleetdeck",
	}
	if diff := cmp.Diff(want, c.Cluster); diff != "" {
		t.Errorf("cluster (-want +got):\n%s", diff)
	}
	c, err = Parse("/etc/fleetdeck.toml", []byte("[cluster]\nendpoints = [\"http://127.0.0.1:2379\"]\n"))
	if err != nil || c.Cluster.Fleet != DefaultFleet || c.Cluster.Node == "" {
		t.Errorf("with the end points alone: %+v, %v, want names for fleet and node", c.Cluster, err)
	}
}

func TestAClusterThatCannotBeIsRefusedByItsKey(t *testing.T) {
	const local = "endpoints = [\"http://127.0.0.1:2379\"]\n"
	for _, tt := range []struct{ name, text, want string }{
		{"no end points", `fleet = "web"`, "cluster.endpoints: needs"},
		{"no URL", `endpoints = ["10.0.0.1:2379"]`, "no end point"},
		{"no port", `endpoints = ["http://10.0.0.1"]`, "no end point"},
		{"a path", `endpoints = ["http://10.0.0.1:2379/v3"]`, "no end point"},
		{"two schemes", `endpoints = ["http://10.0.0.1:2379", "https://10.0.0.2:2379"]`, "another scheme"},
		{"a node that is no name", local + `node = "a:b"`, "cluster.node"},
		{"a fleet that is no name", local + `fleet = "a/b"`, "cluster.fleet"},
		{"a file that is not there", "endpoints = [\"https://10.0.0.1:2379\"]\nca = \"/nowhere/ca.pem\"", "cluster.ca"},
		{"a certificate without its key", "endpoints = [\"https://10.0.0.1:2379\"]\ncert = \"/dev/null\"", "cluster.cert"},
		{"certificates in plain text", local + `ca = "/dev/null"`, "https:// only"},
		{"a user without a password", local + `username = "web"`, "cluster.username"},
		{"a password in the clear", "endpoints = [\"http://10.0.0.1:2379\"]\nusername = \"web\"\npassword_file = \"/dev/null\"", "in the clear"},
		{"a host that is an option", local + "[cluster.hosts]\ncrane = \"-oProxyCommand=x\"", "cluster.hosts.crane"},
		{"a host of two words", local + "[cluster.hosts]\ncrane = \"a b\"", "cluster.hosts.crane"},
		{"a node that is an option", local + "[cluster.hosts]\n-x = \"crane\"", "no name of a node"},
		{"no ssh", local + "ssh = []", "cluster.ssh"},
		{"a program that a shell would act on", local + `ssh_fleetdeck = "fleetdeck; x"`, "cluster.ssh_fleetdeck"},
		{"a space in another", local + "[cluster.spaces]\na = \"/mnt/src\"\nb = \"/mnt/src/b/../c\"", "lie in each other"},
		{"a space twice", local + "[cluster.spaces]\na = \"/mnt/src\"\nb = \"/mnt/src/\"", "lie in each other"},
		{"a space without a root", local + "[cluster.spaces]\na = \"\"", "names no directory"},
		{"a space that is no name", local + "[cluster.spaces]\n\"a/b\" = \"/mnt/src\"", "cluster.spaces.a/b"},
		{"a fence that is too long", local + "self_fence = \"11s\"", "use less than 11s"},
		{"a fence that is too short", local + "self_fence = \"2s\"", "a change of etcd's leader"},
		{"a fence below zero", local + "self_fence = \"-5s\"", "more than zero"},
		{"a fence that is no time", local + "self_fence = \"soon\"", "cluster.self_fence"},
		{"a fence in tmux", local + "self_fence = \"5s\"\n[profiles.w]\ncommand = [\"w\"]\nlauncher = \"tmux\"\n[[slots]]\nname = \"a\"\nrole = \"architect\"\nprofile = \"w\"", "held in tmux"},
		{"an unknown key", local + `lease = 3`, `unknown key "cluster.lease"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse("/etc/fleetdeck.toml", []byte("[cluster]\n"+tt.text))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestAFenceIsOffUnlessItIsAskedFor(t *testing.T) {
	const text = "launcher = \"tmux\"\n[profiles.w]\ncommand = [\"w\"]\nlauncher = \"embedded\"\n[profiles.d]\ncommand = [\"d\"]\n" +
		"[[slots]]\nname = \"a\"\nrole = \"architect\"\nprofile = \"w\"\n[cluster]\nendpoints = [\"http://127.0.0.1:2379\"]\n"
	for _, tt := range []struct {
		name, more string
		want       time.Duration
	}{
		{"off", "", 0},
		{"on, with a profile in tmux that has no slot", "self_fence = \"5s\"", 5 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := Parse("/etc/fleetdeck.toml", []byte(text+tt.more))
			if err != nil || c.Cluster.SelfFence != tt.want {
				t.Errorf("%+v, %v, want %s", c, err, tt.want)
			}
		})
	}
}
