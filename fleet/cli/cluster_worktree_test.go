package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"fleetdeck/fleet"
	"fleetdeck/fleet/cluster/etcdrun"
)

// ordered is a dispatch to another host, and what it came to.
type ordered struct {
	out  fleet.Outcome
	code int
}

// killedOverAWorktree has crane order a worktree of repo on kite, and kills kite's daemon once that has made it and before it has admitted the
// launch. It gives the branch, and where the answer comes.
func killedOverAWorktree(t *testing.T, etcd *etcdrun.Cluster, kite, crane *rig, repo string) (branch string, answer <-chan ordered) {
	t.Helper()
	eye, err := clientv3.New(clientv3.Config{Endpoints: etcd.Endpoints(), Logger: zap.NewNop(), DialTimeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	defer eye.Close()
	pid := kite.daemonPid()
	for i := range 20 {
		branch = fmt.Sprintf("b%d", i)
		made := eye.Watch(clientv3.WithRequireLeader(t.Context()), "/fleetdeck/v1/web/made/kite/", clientv3.WithPrefix(), clientv3.WithFilterDelete())
		answers := make(chan ordered, 1)
		go func() {
			out, code := crane.dispatch("kite:"+repo, "--profile", "worker", "--new-worktree", branch)
			answers <- ordered{out, code}
		}()
		select {
		case <-made:
		case a := <-answers:
			t.Fatalf("nothing was noted of the worktree of an order: exit %d, %+v", a.code, a.out)
		}
		syscall.Kill(pid, syscall.SIGSTOP)
		registry, err := os.ReadFile(filepath.Join(kite.state, "registry.json"))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if !strings.Contains(string(registry), repo+".worktrees/"+branch) {
			syscall.Kill(pid, syscall.SIGKILL)
			kite.await("the daemon is dead", func() bool { return !processAlive(pid) })
			return branch, answers
		}
		syscall.Kill(pid, syscall.SIGCONT) // it was faster: another try
		if a := <-answers; a.code != 0 {
			t.Fatalf("order: exit %d, %+v", a.code, a.out)
		}
	}
	t.Fatal("in 20 tries the daemon was never stopped between making a worktree and admitting its launch")
	return "", nil
}

func TestAWorktreeThatWasMadeForAnOrderIsTakenBackWhereItsDaemonDiesOverIt(t *testing.T) {
	full(t)
	t.Parallel()
	etcd := etcdrun.Start(t, 1)
	kite, crane := newHost(t, etcd, "kite"), newHost(t, etcd, "crane")
	for _, tt := range []struct {
		name  string
		work  string // is written into the worktree while no daemon runs
		stays bool
	}{
		{"nothing is new in it", "", false},
		{"somebody has worked in it", "mine", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			repo := kite.committed(strings.ReplaceAll(tt.name, " ", "-"))
			branch, answer := killedOverAWorktree(t, etcd, kite, crane, repo)
			path := repo + ".worktrees/" + branch
			if data, err := os.ReadFile(filepath.Join(path, "file")); err != nil || string(data) != "one\n" {
				t.Fatalf("the worktree was not made: %q, %v", data, err)
			}
			if tt.work != "" {
				if err := os.WriteFile(filepath.Join(path, tt.work), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			kite.must(nil, "up")
			a := <-answer
			if a.code != 6 || a.out.Outcome != fleet.Refused || strings.Contains(a.out.Message, path+" stays") != tt.stays {
				t.Errorf("the order came to exit %d, %+v, want it refused, and said to stay: %t", a.code, a.out, tt.stays)
			}
			_, err := os.Stat(path)
			branches := kite.git(repo, "branch", "--list", branch)
			if tt.stays != (err == nil) || tt.stays != strings.Contains(branches, branch) {
				t.Errorf("the worktree: %v, branches: %q, want them to stay: %t", err, branches, tt.stays)
			}
			var rows []struct{ Tree, Uncommitted string }
			kite.must(&rows, "worktree", "ls", repo)
			listed := false
			for _, r := range rows {
				listed = listed || r.Tree == path && r.Uncommitted != ""
			}
			if listed != tt.stays {
				t.Errorf("worktree ls: %+v, want it with what is new in it: %t", rows, tt.stays)
			}
			if rows := kite.reservations(); len(rows) != 0 {
				t.Errorf("reservations %+v, want none", rows)
			}
			if out, code := crane.dispatch("kite:"+repo, "--profile", "worker", "--new-worktree", branch+"-again", "--wait"); code != 0 {
				t.Errorf("the next order: exit %d, %+v", code, out)
			}
		})
	}
}
