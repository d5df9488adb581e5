package cli_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"fleetdeck/fleet/cluster/etcdrun"
)

// mover is a host whose fleet moves into a cluster and back, by commands that are killed.
type mover struct {
	*rig
	single, many string // its configuration without and with the cluster
	pids         map[string]int
	held         string // a tree that is reserved all the time
}

func newMover(t *testing.T, members int) *mover {
	t.Helper()
	single := strings.Replace(agents, `lock_wait = "10s"`, `lock_wait = "2s"`, 1)
	m := &mover{rig: newRig(t, single), single: single, many: single + clusterTable(etcdrun.Start(t, 1), "kite")}
	m.must(nil, "up")
	for i := range members {
		if out, code := m.dispatch(m.repo(fmt.Sprint(i)), "--profile", "worker", "--wait"); code != 0 {
			t.Fatalf("dispatch: exit %d, %+v", code, out)
		}
	}
	m.held = m.repo("held")
	m.must(nil, "reserve", m.held, "--grace", "1h")
	m.pids = m.rig.pids()
	return m
}

// move carries an import or an export through, and has the daemon up on what comes of it.
func (m *mover) move(verb string) {
	m.t.Helper()
	m.setConfig(m.many)
	m.must(nil, "cluster", verb)
	if verb == "export" {
		m.setConfig(m.single)
		m.must(nil, "up")
	}
}

// ready brings the host to where a move begins.
func (m *mover) ready(verb string) {
	m.t.Helper()
	if in := m.stage() != "file"; in && verb == "import" {
		m.move("export")
	} else if !in && verb == "export" {
		m.move("import")
	}
	m.setConfig(m.many)
}

// stage is how far a move came, by what it left: "file" is where none has begun, or all is back.
func (m *mover) stage() string {
	data, _ := m.fileState()
	for _, step := range []string{"importing", "imported", "exporting"} {
		if strings.Contains(data, `"step":"`+step) {
			return step
		}
	}
	return "file"
}

// killBefore runs a move and kills it before its nth step, where it has so many, and gives the steps that it came to.
func (m *mover) killBefore(n int, verb string) []string {
	m.t.Helper()
	run := m.command("cluster", verb)
	cmd := exec.Command("sh", append([]string{"-c", `kill -STOP $$; exec "$@"`, "sh", run.Path}, run.Args[1:]...)...)
	said, err := os.Create(m.dir + "/said")
	if err != nil {
		m.t.Fatal(err)
	}
	defer said.Close()
	cmd.Dir, cmd.Stdout, cmd.Stderr = m.dir, said, said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	defer cmd.Wait() // fails where the follower has seen its end
	m.await("it is stopped", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid))
		return err == nil && bytes.Contains(stat, []byte(") T "))
	})
	follower, err := (&stepper{pid: cmd.Process.Pid, at: n, talks: true}).begin()
	if err != nil {
		cmd.Process.Kill()
		if !errors.Is(err, syscall.EPERM) { // as containers have it that let nobody trace
			m.t.Fatal(err)
		}
		m.t.Skipf("SKIPPED, no move was killed between its steps: it cannot be traced here: %v", err)
	}
	steps, err := follower.wait()
	if err != nil && !errors.Is(err, errEnded) {
		m.t.Fatal(err)
	}
	return steps
}

// wantNobodyLetIn tries, by the file and by the cluster, to have somebody beside a member.
func (m *mover) wantNobodyLetIn() {
	m.t.Helper()
	for _, config := range []string{m.single, m.many} {
		m.setConfig(config)
		m.fleetdeck("up") // which may be refused, or run on the other one
		for _, tree := range []string{m.repo("0"), m.held} {
			if out, code := m.dispatch(tree, "--profile", "worker"); code == 0 {
				m.t.Errorf("a dispatch to %s came to %+v, want it refused for who is there", tree, out)
			}
		}
	}
}

// wantAll demands that the daemon lists the members as they were, and that what was reserved is, and nothing else.
func (m *mover) wantAll() {
	m.t.Helper()
	if now := m.rig.pids(); !maps.Equal(now, m.pids) {
		m.t.Errorf("members %v, want %v", now, m.pids)
	}
	if rows := m.reservations(); len(rows) != 1 || rows[0].Tree != m.held {
		m.t.Errorf("reservations %+v, want that of %s", rows, m.held)
	}
	if n := len(m.starts()); n != len(m.pids) {
		m.t.Errorf("%d agents were started, want %d", n, len(m.pids))
	}
}

// TestAnImportThatIsKilledIsFinishedByTheNext kills imports and exports, and has each finished by itself or undone by the
// other: -killpoints says at how many of their steps.
func TestAnImportThatIsKilledIsFinishedByTheNext(t *testing.T) {
	full(t)
	t.Parallel()
	m := newMover(t, 2)
	verbs := []string{"import", "export"}
	for i, verb := range verbs {
		m.ready(verb)
		all := m.killBefore(0, verb)
		if want := []string{"imported", "file"}[i]; m.stage() != want || len(all) < 20 {
			said, _ := os.ReadFile(m.dir + "/said")
			t.Fatalf("%s left %q in %d steps, want %q: %s", verb, m.stage(), len(all), want, said)
		}
		if verb == "export" {
			m.setConfig(m.single)
			m.must(nil, "up")
		}
		points := *killPoints / 2 // a round here takes longer than those of a daemon
		stride := 1
		if *killPoints > 0 {
			stride = max(1, len(all)/max(1, points))
		}
		seen := map[string]int{}
		var log strings.Builder
		for n, short := stride, 0; n <= len(all) && short < 5; n += stride {
			m.ready(verb)
			steps := m.killBefore(n, verb)
			if len(steps) < n {
				short++ // it had fewer steps this time; how many differs a little
			} else {
				seen[m.stage()]++
				fmt.Fprintf(&log, "%3d before %-32s: %s\n", n, steps[n-1], m.stage())
			}
			m.wantNobodyLetIn()
			m.move(verbs[n/stride%2])
			m.wantAll()
			if t.Failed() {
				t.Fatalf("%s was killed before step %d, %s", verb, n, steps[len(steps)-1])
			}
		}
		t.Logf("%s: %d steps, killed with these stages: %v\n%s", verb, len(all), seen, log.String())
		for _, stage := range [][]string{{"file", "importing", "imported"}, {"imported", "exporting", "file"}}[i] {
			if stride == 1 && seen[stage] == 0 {
				t.Errorf("no %s was killed with %q in the file: the sweep has lost its aim", verb, stage)
			}
		}
	}
}
