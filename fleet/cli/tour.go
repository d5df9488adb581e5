package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"fleetdeck/fleet"
)

// tourPatience bounds each wait of the tour. A slow machine needs it; nothing sleeps that long for luck.
const tourPatience = 30 * time.Second

// step is one step of the tour: what it shows, and the check that it held.
type step struct {
	title string
	do    func(d *demo, ctx context.Context) (saw string, err error)
}

// tour runs the steps in order, and stops at the first that does not hold.
func (d *demo) tour(ctx context.Context) error {
	steps := []step{
		{"six repositories, every tree free", (*demo).tourFree},
		{"a reservation outlives the dispatcher that wrote it", (*demo).tourReserved},
		{"a second dispatch into that tree is refused", (*demo).tourRefused},
		{"the worker reports ready: its tree is occupied, its entry gone", (*demo).tourListed},
		{"two rivals race for one tree: one wins", (*demo).tourRivals},
		{"an agent that fails while booting leaves nothing behind", (*demo).tourBroken},
		{"an agent asks, and is answered", (*demo).tourAsk},
		{"an agent crashes, and its exit code is known", (*demo).tourCrash},
		{"the daemon is killed, and the next one lists the same members", (*demo).tourKill},
		{"a prune leaves the file alone while somebody else holds the lock", (*demo).tourBusy},
		{"a stale reservation is named, and pruned", (*demo).tourPrune},
		{"a member is stopped, and its tree is free again", (*demo).tourStop},
	}
	for i, s := range steps {
		sctx, cancel := context.WithTimeout(ctx, 2*tourPatience)
		saw, err := s.do(d, sctx)
		cancel()
		if err != nil {
			d.session.say("FAIL %2d  %s\n         %v", i+1, s.title, err)
			return fmt.Errorf("step %d of the tour did not hold: %s: %w", i+1, s.title, err)
		}
		d.session.say("ok   %2d  %s\n         %s", i+1, s.title, saw)
	}
	d.session.say("%d steps, every one held", len(steps))
	return nil
}

// call runs a command with --json, wants its exit code, and reads what it printed into v.
func (d *demo) call(ctx context.Context, want int, v any, args ...string) error {
	out, code, err := d.run(ctx, append(args, "--json")...)
	if err != nil {
		return err
	}
	if code != want {
		return fmt.Errorf("fleetdeck %v: exit %d, want %d: %s", args, code, want, out)
	}
	if v == nil {
		return nil
	}
	// What follows the document went to stderr.
	if err := json.NewDecoder(bytes.NewReader([]byte(out))).Decode(v); err != nil {
		return fmt.Errorf("fleetdeck %v printed no JSON: %w", args, err)
	}
	return nil
}

// row gives a tree as `trees` shows it.
func (d *demo) row(ctx context.Context, name string) (fleet.TreeRow, error) {
	var rows []fleet.TreeRow
	if err := d.call(ctx, exitOK, &rows, "trees"); err != nil {
		return fleet.TreeRow{}, err
	}
	for _, r := range rows {
		if r.Tree == d.tree(name) {
			return r, nil
		}
	}
	return fleet.TreeRow{}, fmt.Errorf("%s is not among the trees", name)
}

// await waits until ok says that the tree is as it should be.
func (d *demo) await(ctx context.Context, name string, ok func(fleet.TreeRow) bool) (fleet.TreeRow, error) {
	ctx, cancel := context.WithTimeout(ctx, tourPatience)
	defer cancel()
	for {
		r, err := d.row(ctx, name)
		if err == nil && ok(r) {
			return r, nil
		}
		select {
		case <-ctx.Done():
			return r, fmt.Errorf("%s stays %s", name, r.Occupancy)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (d *demo) awaitMember(ctx context.Context, id string, ok func(fleet.Member) bool) (fleet.Member, error) {
	ctx, cancel := context.WithTimeout(ctx, tourPatience)
	defer cancel()
	var last fleet.Member
	for {
		var members []fleet.Member
		if err := d.call(ctx, exitOK, &members, "members"); err == nil {
			for _, m := range members {
				if m.ID == id {
					if last = m; ok(m) {
						return m, nil
					}
				}
			}
		}
		select {
		case <-ctx.Done():
			return last, fmt.Errorf("member %s stays %q (%s)", id, last.State, last.StateMessage)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (d *demo) dispatch(ctx context.Context, want int, name, profile string, more ...string) (fleet.Outcome, error) {
	var out fleet.Outcome
	err := d.call(ctx, want, &out, append([]string{"dispatch", d.tree(name), "--profile", profile, "--task", "Show what you can do."}, more...)...)
	return out, err
}

func (d *demo) tourFree(ctx context.Context) (string, error) {
	for _, name := range demoTrees {
		r, err := d.row(ctx, name)
		if err != nil {
			return "", err
		}
		if r.Occupancy != fleet.Free || r.Branch != "main" || r.Dirty {
			return "", fmt.Errorf("%s is %s on %q, dirty %t", name, r.Occupancy, r.Branch, r.Dirty)
		}
	}
	return fmt.Sprintf("%d trees free, on branch main, clean", len(demoTrees)), nil
}

func (d *demo) tourReserved(ctx context.Context) (string, error) {
	out, err := d.dispatch(ctx, exitOK, "api", "worker")
	if err != nil {
		return "", err
	}
	r, err := d.row(ctx, "api")
	if err != nil {
		return "", err
	}
	if r.Occupancy != fleet.Reserved || r.Reservation != out.Reservation || r.RemainingS <= 0 {
		return "", fmt.Errorf("api is %s by %q with %.0f s left, want reserved by %q", r.Occupancy, r.Reservation, r.RemainingS, out.Reservation)
	}
	return fmt.Sprintf("api is reserved by %s, %.0f s left", r.Reservation, r.RemainingS), nil
}

func (d *demo) tourRefused(ctx context.Context) (string, error) {
	out, err := d.dispatch(ctx, exitRefused, "api", "worker")
	if err != nil {
		return "", err
	}
	if out.Code != fleet.CodeTreeReserved {
		return "", fmt.Errorf("refused with %s, want %s", out.Code, fleet.CodeTreeReserved)
	}
	return fmt.Sprintf("%s: %s", out.Code, out.Message), nil
}

func (d *demo) tourListed(ctx context.Context) (string, error) {
	r, err := d.await(ctx, "api", func(r fleet.TreeRow) bool { return r.Occupancy == fleet.Taken })
	if err != nil {
		return "", err
	}
	for deadline := time.Now().Add(tourPatience); ; time.Sleep(20 * time.Millisecond) {
		var entries []fleet.ReservationRow
		if err := d.call(ctx, exitOK, &entries, "reservations"); err != nil {
			return "", err
		}
		if len(entries) == 0 {
			return fmt.Sprintf("api is occupied by %s, no entry is left", r.Member), nil
		}
		if time.Now().After(deadline) {
			return "", fmt.Errorf("%d entries are left", len(entries))
		}
	}
}

func (d *demo) tourRivals(ctx context.Context) (string, error) {
	type result struct {
		out  fleet.Outcome
		text string
		code int
		err  error
	}
	results := make(chan result)
	for range 2 {
		go func() {
			var r result
			r.text, r.code, r.err = d.run(ctx, "dispatch", d.tree("web"), "--profile", "worker", "--json")
			json.NewDecoder(bytes.NewReader([]byte(r.text))).Decode(&r.out)
			results <- r
		}()
	}
	won, refusal := 0, ""
	for range 2 {
		r := <-results
		switch {
		case r.err != nil:
			return "", r.err
		case r.code == exitOK:
			won++
		case r.code == exitRefused:
			refusal = string(r.out.Code) + ": " + r.out.Message
		default:
			return "", fmt.Errorf("exit %d: %s", r.code, r.text)
		}
	}
	if won != 1 {
		return "", fmt.Errorf("%d of 2 were accepted", won)
	}
	return "the other: " + refusal, nil
}

func (d *demo) tourBroken(ctx context.Context) (string, error) {
	out, err := d.dispatch(ctx, exitRefused, "billing", "broken", "--wait")
	if err != nil {
		return "", err
	}
	if out.Code != fleet.CodeLaunchFailed {
		return "", fmt.Errorf("refused with %s, want %s", out.Code, fleet.CodeLaunchFailed)
	}
	if _, err := d.await(ctx, "billing", func(r fleet.TreeRow) bool { return r.Occupancy == fleet.Free }); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s: %s; billing is free", out.Code, out.Message), nil
}

func (d *demo) tourAsk(ctx context.Context) (string, error) {
	out, err := d.dispatch(ctx, exitOK, "docs", "asker", "--wait")
	if err != nil {
		return "", err
	}
	m, err := d.awaitMember(ctx, out.Member, func(m fleet.Member) bool { return m.State == fleet.StateWaiting })
	if err != nil {
		return "", err
	}
	question := m.StateMessage
	if err := d.call(ctx, exitOK, nil, "send", out.Member, "sqlite"); err != nil {
		return "", err
	}
	m, err = d.awaitMember(ctx, out.Member, func(m fleet.Member) bool { return m.StateMessage == "using sqlite" })
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%q, answered: it is %s, %q", question, m.State, m.StateMessage), nil
}

func (d *demo) tourCrash(ctx context.Context) (string, error) {
	out, err := d.dispatch(ctx, exitOK, "infra", "crasher", "--wait")
	if err != nil {
		return "", err
	}
	m, err := d.awaitMember(ctx, out.Member, func(m fleet.Member) bool { return !m.Alive() })
	if err != nil {
		return "", err
	}
	if m.ExitCode == nil || *m.ExitCode != 70 {
		return "", fmt.Errorf("its exit code is %v, want 70", m.ExitCode)
	}
	return fmt.Sprintf("%s exited with code %d", m.ID, *m.ExitCode), nil
}

func (d *demo) tourKill(ctx context.Context) (string, error) {
	var before []fleet.Member
	if err := d.call(ctx, exitOK, &before, "members"); err != nil {
		return "", err
	}
	var status statusReport
	if err := d.call(ctx, exitOK, &status, "status"); err != nil {
		return "", err
	}
	if err := syscall.Kill(status.Daemon.Pid, syscall.SIGKILL); err != nil {
		return "", err
	}
	if err := d.call(ctx, exitOK, nil, "up"); err != nil {
		return "", err
	}
	alive := 0
	for _, m := range before {
		if !m.Alive() {
			continue
		}
		alive++
		got, err := d.awaitMember(ctx, m.ID, func(fleet.Member) bool { return true })
		if err != nil {
			return "", err
		}
		if !got.Alive() || got.Pid != m.Pid || got.Tree != m.Tree || got.CharterSHA256 != m.CharterSHA256 {
			return "", fmt.Errorf("%s came back as another: %+v", m.ID, got)
		}
	}
	return fmt.Sprintf("%d members live on, with the same ids and processes", alive), nil
}

func (d *demo) tourBusy(ctx context.Context) (string, error) {
	if err := d.call(ctx, exitOK, nil, "reserve", d.tree("mobile"), "--profile", "worker", "--grace", "1ms"); err != nil {
		return "", err
	}
	before, err := os.ReadFile(d.session.book.Path())
	if err != nil {
		return "", err
	}
	// A holder that says when it has the lock, and keeps it until its stdin ends.
	holder := exec.CommandContext(ctx, d.exe, "lock", "--state", d.session.dir.Path, "--config", d.session.conf.Path,
		"--", "sh", "-c", "echo held; cat")
	stdin, err := holder.StdinPipe()
	if err != nil {
		return "", err
	}
	stdout, err := holder.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := holder.Start(); err != nil {
		return "", err
	}
	defer holder.Wait()
	defer stdin.Close()
	if _, err := stdout.Read(make([]byte, 5)); err != nil {
		return "", err
	}
	var report fleet.PruneReport
	if err := d.call(ctx, exitBusy, &report, "prune"); err != nil {
		return "", err
	}
	after, err := os.ReadFile(d.session.book.Path())
	if err != nil {
		return "", err
	}
	if !bytes.Equal(before, after) || report.Lock != "busy" {
		return "", fmt.Errorf("the file changed, or the report says %q", report.Lock)
	}
	r, err := d.row(ctx, "mobile")
	if err != nil {
		return "", err
	}
	if r.Occupancy != fleet.Free {
		return "", fmt.Errorf("mobile counts as %s, want free: its entry has expired", r.Occupancy)
	}
	return "exit 4, the file is unchanged, and its expired entry counts for nothing all the same", nil
}

func (d *demo) tourPrune(ctx context.Context) (string, error) {
	var plan, done fleet.PruneReport
	if err := d.call(ctx, exitOK, &plan, "prune", "--dry-run"); err != nil {
		return "", err
	}
	if len(plan.Pruned) != 1 || plan.Pruned[0].Tree != d.tree("mobile") || plan.Pruned[0].Reason != fleet.VerdictExpired {
		return "", fmt.Errorf("the dry run names %v, want mobile, expired", plan.Pruned)
	}
	if err := d.call(ctx, exitOK, &done, "prune"); err != nil {
		return "", err
	}
	if len(done.Pruned) != 1 || done.Pruned[0] != plan.Pruned[0] {
		return "", fmt.Errorf("the prune dropped %v", done.Pruned)
	}
	return fmt.Sprintf("mobile: %s, dropped; %d kept", done.Pruned[0].Reason, done.Kept), nil
}

func (d *demo) tourStop(ctx context.Context) (string, error) {
	r, err := d.row(ctx, "api")
	if err != nil {
		return "", err
	}
	if err := d.call(ctx, exitOK, nil, "stop", r.Member); err != nil {
		return "", err
	}
	m, err := d.awaitMember(ctx, r.Member, func(m fleet.Member) bool { return !m.Alive() })
	if err != nil {
		return "", err
	}
	if syscall.Kill(m.Pid, 0) == nil {
		return "", fmt.Errorf("process %d lives on", m.Pid)
	}
	if _, err := d.await(ctx, "api", func(r fleet.TreeRow) bool { return r.Occupancy == fleet.Free }); err != nil {
		return "", err
	}
	return "api is free, and the process is gone", nil
}
