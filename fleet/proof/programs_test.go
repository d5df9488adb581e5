package proof_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/book"
	"fleetdeck/fleet/client"
	"fleetdeck/fleet/launch/process"
	"fleetdeck/fleet/proof"
	"fleetdeck/fleet/state"
)

// programConfig is a fleet whose agents end by themselves, some of them before they are listed.
const programConfig = `
grace = "6s"
lock_wait = "10s"
prune_wait = "2s"
[profiles.worker]
command = [EXE, "proof-agent", "DIR/stays", "work"]
[profiles.failing]
command = [EXE, "proof-agent", "DIR/stays", "fail"]
ready = "pattern:never"
[[slots]]
name = "one"
role = "architect"
profile = "worker"
[[slots]]
name = "two"
role = "architect"
profile = "failing"
`

// programs is a driver of whole programs: each operation is a process of fleetdeck, or of a foreign dispatcher, beside the
// real daemon, its keeper and its agents.
type programs struct {
	t      *testing.T
	dir    string
	exe    string
	trees  []string
	python string // the foreign dispatcher, where there is a python3

	book *book.Book

	mu   sync.Mutex // guards the rest
	ops  []proof.Op
	made int
}

func newPrograms(t *testing.T, trees int) *programs {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &programs{t: t, dir: scratch(t), exe: exe}
	conf := strings.NewReplacer("DIR", p.dir, "EXE", strconv.Quote(exe)).Replace(programConfig)
	if err := os.WriteFile(filepath.Join(p.dir, "fleetdeck.toml"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range trees {
		tree := filepath.Join(p.dir, "src", fmt.Sprintf("t%d", i))
		cmd := exec.Command("git", "init", "--quiet", tree)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git init: %v: %s", err, out)
		}
		p.trees = append(p.trees, tree)
	}
	p.python = p.foreign()
	t.Cleanup(func() {
		p.run("up")
		if r, _ := p.run("down", "--stop-members"); r.code != 0 {
			t.Errorf("down: exit %d: %s", r.code, r.stderr)
		}
	})
	if r, _ := p.run("up"); r.code != 0 {
		t.Fatalf("up: exit %d: %s", r.code, r.stderr)
	}
	if p.book, err = book.Open(filepath.Join(p.dir, "state"), process.Now); err != nil {
		t.Fatal(err)
	}
	return p
}

// foreign takes the Python dispatcher from docs/interop.md.
func (p *programs) foreign() string {
	page, err := os.ReadFile("../../docs/interop.md")
	code := regexp.MustCompile("(?s)```python dispatch.py\n(.*?)\n```\n").FindSubmatch(page)
	if _, perr := exec.LookPath("python3"); err != nil || perr != nil || code == nil {
		p.t.Logf("no foreign dispatcher takes part: page %v, python3 %v", err, perr)
		return ""
	}
	path := filepath.Join(p.dir, "dispatch.py")
	if err := os.WriteFile(path, code[1], 0o600); err != nil {
		p.t.Fatal(err)
	}
	return path
}

// ran is how a process ended.
type ran struct {
	pid, code      int
	stdout, stderr string
	call, end      int64
}

func (p *programs) command(args ...string) *exec.Cmd {
	cmd := exec.Command(p.exe, append(args[:1:1], append([]string{
		"--state", filepath.Join(p.dir, "state"), "--config", filepath.Join(p.dir, "fleetdeck.toml"), "--json",
	}, args[1:]...)...)...)
	cmd.Dir = p.dir
	return cmd
}

func (p *programs) run(args ...string) (ran, error) { return p.carry(p.command(args...), nil) }

// carry runs cmd, and harm beside it.
func (p *programs) carry(cmd *exec.Cmd, harm func(*os.Process)) (ran, error) {
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	r := ran{call: mono()}
	if err := cmd.Start(); err != nil {
		return r, err
	}
	var wg sync.WaitGroup
	if harm != nil {
		wg.Go(func() { harm(cmd.Process) })
	}
	cmd.Wait()
	r.end = mono()
	wg.Wait()
	r.pid, r.code, r.stdout, r.stderr = cmd.Process.Pid, cmd.ProcessState.ExitCode(), out.String(), errs.String()
	return r, nil
}

// record puts ops of one process on record.
func (p *programs) record(client int, r ran, ops ...proof.Op) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made++
	for _, op := range ops {
		op.Client, op.Call, op.Return = client, r.call, r.end
		p.ops = append(p.ops, op)
	}
}

// client makes one operation after the other until stop says so.
func (p *programs) client(n int, random *rand.Rand, stop func() bool) {
	var mine []proof.Op
	for !stop() {
		tree := p.trees[random.IntN(len(p.trees))]
		switch k := random.IntN(20); {
		case k < 10:
			p.dispatch(n, random, tree)
		case k < 12 && p.python != "":
			p.dispatchForeign(n, tree)
		case k < 14:
			if op, ok := p.reserve(n, random, tree); ok {
				mine = append(mine, op)
			}
		case k < 17 && len(mine) > 0:
			p.release(n, mine[0])
			mine = mine[1:]
		default:
			p.prune(n)
		}
	}
	for _, op := range mine {
		p.release(n, op)
	}
}

func (p *programs) dispatch(client int, random *rand.Rand, tree string) {
	args := []string{"dispatch", tree, "--profile", "worker", "--role", fleet.RoleDev}
	grace := 6 * time.Second
	pool := ""
	switch random.IntN(6) {
	case 0, 1, 2:
		args[5], pool = "architect", "worker"
	case 3:
		args[3], args[5], pool = "failing", "architect", "failing"
	}
	var harm func(*os.Process)
	killed := false
	wait := time.Duration(random.IntN(120)) * time.Millisecond
	switch random.IntN(8) {
	case 0:
		killed = true
		harm = func(d *os.Process) { time.Sleep(wait); d.Kill() }
	case 1: // held up past its grace
		grace = 400 * time.Millisecond
		args = append(args, "--grace", grace.String())
		harm = func(d *os.Process) {
			time.Sleep(wait)
			d.Signal(syscall.SIGSTOP)
			time.Sleep(600 * time.Millisecond)
			d.Signal(syscall.SIGCONT)
		}
	case 2:
		if pool == "" {
			args = append(args, "--queue")
		}
	}
	r, err := p.carry(p.command(args...), harm)
	if err != nil {
		p.t.Errorf("dispatch: %v", err)
		return
	}
	var out fleet.Outcome
	if json.Unmarshal([]byte(r.stdout), &out) != nil {
		if !killed {
			p.t.Errorf("dispatch: exit %d: %s", r.code, r.stderr)
		}
		p.record(client, r)
		return
	}
	reserve := proof.Op{Kind: proof.Reserve, Tree: tree, Early: r.call + int64(grace), Late: r.end + int64(grace)}
	switch {
	case out.Outcome == fleet.Accepted:
		reserve.ID, reserve.Result = out.Reservation, proof.Done
		p.record(client, r, reserve, proof.Op{
			Kind: proof.Spawn, Tree: tree, ID: out.Reservation, Result: proof.Done, Pool: poolOf(out.Slot), Slot: out.Slot, Hidden: true,
		})
	case out.Outcome == fleet.Unknown:
		p.record(client, r)
	case strings.Contains(out.Message, " is occupied by member ") || strings.Contains(out.Message, " is reserved by "):
		reserve.ID, reserve.Result, reserve.Code = "-", proof.No, out.Code
		reserve.By = byOf(fleet.Refuse(out.Code, "%s", out.Message))
		p.record(client, r, reserve)
	default:
		p.record(client, r)
		if !strings.Contains(out.Message, "which stays until its grace runs out") {
			p.leftNothing(r, out.Message)
		}
	}
}

// poolOf is the pool that a slot of programConfig is in.
func poolOf(slot string) string { return map[string]string{"one": "worker", "two": "failing"}[slot] }

func (p *programs) dispatchForeign(client int, tree string) {
	r, err := p.carry(exec.Command("python3", p.python, filepath.Join(p.dir, "state"), tree, "worker"), nil)
	if err != nil {
		p.t.Errorf("foreign dispatch: %v", err)
		return
	}
	id, accepted := strings.CutPrefix(strings.TrimSpace(r.stdout), "accepted: ")
	if accepted {
		p.record(client, r,
			proof.Op{Kind: proof.Reserve, Tree: tree, ID: id, Result: proof.Done, Early: r.call + int64(89*time.Second), Late: 1 << 62},
			proof.Op{Kind: proof.Spawn, Tree: tree, ID: id, Result: proof.Done, Hidden: true})
		return
	}
	p.record(client, r)
	if r.code == 3 || r.code == 6 {
		p.leftNothing(r, r.stderr)
	}
}

// leftNothing checks that a dispatch that was refused left no reservation behind.
func (p *programs) leftNothing(r ran, why string) {
	entries, err := p.book.Read()
	if err != nil {
		p.t.Errorf("read the book: %v", err)
	}
	for _, e := range entries {
		if e.Dispatcher.Pid == r.pid {
			p.t.Errorf("left behind: reservation %s of %s, whose dispatch (pid %d) was refused: %s", e.ID, e.Tree, r.pid, why)
		}
	}
}

func (p *programs) reserve(client int, random *rand.Rand, tree string) (proof.Op, bool) {
	grace := 6 * time.Second
	if random.IntN(2) == 0 {
		grace = 300 * time.Millisecond
	}
	r, _ := p.run("reserve", tree, "--profile", "worker", "--grace", grace.String())
	op := proof.Op{Kind: proof.Reserve, Tree: tree, ID: "-", Result: proof.No, Early: r.call + int64(grace), Late: r.end + int64(grace)}
	var out fleet.Outcome
	if json.Unmarshal([]byte(r.stdout), &out) == nil {
		if op.Code = out.Code; r.code == 0 {
			op.ID, op.Result = out.Reservation, proof.Done
		} else {
			op.By = byOf(fleet.Refuse(out.Code, "%s", out.Message))
		}
	}
	p.record(client, r, op)
	return op, op.Result == proof.Done
}

func (p *programs) release(client int, of proof.Op) {
	r, _ := p.run("release", of.Tree, "--id", of.ID)
	op := proof.Op{Kind: proof.Release, Tree: of.Tree, ID: of.ID, Result: proof.No}
	switch r.code {
	case 0:
		op.Result, op.By = proof.Done, of.ID
	case 7: // gone, or another's by now
	default:
		p.t.Errorf("release: exit %d: %s", r.code, r.stderr)
		op.Result = proof.Unknown
	}
	p.record(client, r, op)
}

func (p *programs) prune(client int) {
	r, _ := p.run("prune")
	var report fleet.PruneReport
	op := proof.Op{Kind: proof.Prune, Result: proof.No}
	if err := json.Unmarshal([]byte(r.stdout), &report); err == nil && r.code == 0 {
		op.Result, op.Dropped = proof.Done, report.Pruned
	}
	p.record(client, r, op)
}

// harass kills the daemon again and again, and starts it again.
func (p *programs) harass(random *rand.Rand, stop func() bool) {
	for !stop() {
		time.Sleep(time.Duration(300+random.IntN(1500)) * time.Millisecond) // the pace of the kills
		if pid := p.daemon(); pid > 0 {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		p.run("up")
	}
	p.run("up")
}

func (p *programs) daemon() int {
	var s struct {
		Daemon fleet.DaemonInfo `json:"daemon"`
	}
	p.read(&s, "status")
	return s.Daemon.Pid
}

// read reads the JSON that a command prints into v.
func (p *programs) read(v any, args ...string) error {
	r, _ := p.run(args...)
	if r.code != 0 {
		return fmt.Errorf("fleetdeck %v: exit %d: %s", args, r.code, r.stderr)
	}
	return json.Unmarshal([]byte(r.stdout), v)
}

// rest waits until nothing is under way, and checks that nothing was left behind.
func (p *programs) rest() error {
	dir, err := state.Open(filepath.Join(p.dir, "state"))
	if err != nil {
		return err
	}
	c := client.New(dir.Socket, "")
	for until := time.Now().Add(patience / 4); ; time.Sleep(20 * time.Millisecond) {
		busy := p.busy(c)
		if busy == nil {
			return nil
		}
		if time.Now().After(until) {
			return fmt.Errorf("left behind: %w", busy)
		}
	}
}

// busy says what is under way, or holds what nobody needs.
func (p *programs) busy(c *client.Client) error {
	roster, err := c.Roster(p.t.Context())
	if err != nil {
		return err
	}
	for _, l := range roster.Launches {
		return fmt.Errorf("launch %s in %s", l.ID, l.Tree)
	}
	for _, m := range roster.Members {
		if m.Alive() {
			return fmt.Errorf("member %s in %s", m.ID, m.Tree)
		}
	}
	var queue []json.RawMessage
	if err := p.read(&queue, "queue", "ls"); err != nil || len(queue) > 0 {
		return fmt.Errorf("%d tasks in the queue: %w", len(queue), err)
	}
	slots, err := c.Slots(p.t.Context())
	for _, s := range slots {
		if s.State != fleet.SlotFree {
			return fmt.Errorf("slot %s, %s for %s, who is gone", s.Name, s.State, s.Member)
		}
	}
	return err
}
