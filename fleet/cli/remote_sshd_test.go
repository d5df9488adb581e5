package cli_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"fleetdeck/fleet/cluster/etcdrun"
)

// sshd starts a real one on a port of its own, with keys of its own, and gives the configuration with which ssh gets there as the node
// of r, whose state it works on.
func sshd(t *testing.T, r *rig, node string) (sshConfig string) {
	t.Helper()
	var sbin string
	for _, dir := range []string{"/usr/sbin", "/usr/local/sbin", "/sbin", "/usr/bin"} {
		if _, err := os.Stat(dir + "/sshd"); err == nil {
			sbin = dir + "/sshd"
		}
	}
	keygen, kerr := exec.LookPath("ssh-keygen")
	_, serr := exec.LookPath("ssh")
	if sbin == "" || kerr != nil || serr != nil {
		t.Skip("SKIPPED: no sshd, ssh-keygen or ssh here (Debian: openssh-server)")
	}
	if os.Getuid() == 0 {
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // it locks itself in there
			t.Skipf("SKIPPED: sshd as root needs a directory: %v", err)
		}
	}
	dir := t.TempDir()
	for _, key := range []string{"host", "user"} {
		if out, err := exec.Command(keygen, "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, key)).CombinedOutput(); err != nil {
			t.Fatalf("ssh-keygen: %v: %s", err, out)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	server := write("sshd_config", fmt.Sprintf(`ListenAddress 127.0.0.1
Port %d
HostKey %s/host
PidFile none
AuthorizedKeysFile %s/user.pub
StrictModes no
UsePAM no
PermitRootLogin yes
PasswordAuthentication no
AcceptEnv FLEETDECK_*
SetEnv HOME=%s
`, port, dir, dir, dir)) // bash under sshd reads .bashrc, and the user's own may do anything
	cmd := exec.Command(sbin, "-D", "-e", "-f", server)
	said, err := os.Create(filepath.Join(dir, "sshd.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		t.Skipf("SKIPPED: sshd does not start: %v", err)
	}
	ended := make(chan struct{})
	go func() { cmd.Wait(); close(ended) }()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-ended
		if t.Failed() {
			log, _ := os.ReadFile(said.Name())
			t.Logf("sshd: %s", log)
		}
	})
	r.await("sshd listens", func() bool {
		select {
		case <-ended:
			log, _ := os.ReadFile(said.Name())
			t.Skipf("SKIPPED: sshd ends at once: %s", log)
		default:
		}
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	hostKey, err := os.ReadFile(filepath.Join(dir, "host.pub"))
	if err != nil {
		t.Fatal(err)
	}
	known := write("known_hosts", fmt.Sprintf("[127.0.0.1]:%d %s", port, hostKey))
	return fmt.Sprintf(`Host %s
  HostName 127.0.0.1
  Port %d
  User %s
  IdentityFile %s/user
  IdentitiesOnly yes
  UserKnownHostsFile %s
  LogLevel ERROR
  SetEnv FLEETDECK_STATE=%s FLEETDECK_CONFIG=%s
`, node, port, me.Username, dir, known, r.state, r.config)
}

func TestAMemberOfAnotherHostIsAttachedToThroughARealSshd(t *testing.T) {
	full(t)
	t.Parallel()
	etcd := etcdrun.Start(t, 1)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	more := fmt.Sprintf("ssh = [\"ssh\", \"-F\", \"DIR/ssh_config\"]\nssh_fleetdeck = %q\n", exe) + `
[profiles.echo]
command = ["sh", "-c", "echo ready; while read -r line; do echo \"got $line\"; done"]
ready = "pattern:ready"
`
	kite, crane := newHost(t, etcd, "kite", more), newHost(t, etcd, "crane", more)
	if err := os.WriteFile(filepath.Join(kite.dir, "ssh_config"), []byte(sshd(t, crane, "crane")), 0o600); err != nil {
		t.Fatal(err)
	}
	out, code := kite.dispatch("crane:"+crane.repo("api"), "--profile", "echo", "--wait")
	if code != 0 {
		t.Fatalf("dispatch: exit %d, %+v", code, out)
	}
	kite.await("kite knows crane's member", func() bool { return len(on(kite, "crane")) == 1 })

	a := kite.open(100, 30, "attach", out.Member)
	a.shows("ready")
	a.keys("it's $HOME `x`\r")
	a.shows("got it's $HOME `x`")
	a.keys("\x1d") // ctrl-]
	<-a.ends
	if err := a.cmd.Wait(); err != nil {
		t.Errorf("attach ended with %v", err)
	}
	if _, stderr, code := kite.fleetdeck("send", out.Member, "it's $(touch "+crane.dir+"/owned); `"); code != 0 {
		t.Errorf("send: exit %d: %s", code, stderr)
	}
	kite.await("the screen shows what was sent", func() bool {
		stdout, _, code := kite.fleetdeck("screen", out.Member)
		return code == 0 && strings.Contains(stdout, "got it's $(touch "+crane.dir+"/owned); `")
	})
	// What ended there is told by the same code as here.
	if _, stderr, code := kite.fleetdeck("screen", "crane:/nowhere"); code != 7 {
		t.Errorf("screen of nobody: exit %d: %s, want 7", code, stderr)
	}
	kite.must(nil, "stop", out.Member)
	if m := on(crane, "crane"); len(m) != 0 {
		t.Errorf("after its stop crane has %+v", m)
	}
	if _, err := os.Stat(filepath.Join(crane.dir, "owned")); err == nil {
		t.Error("a shell ran a part of a text")
	}
}
