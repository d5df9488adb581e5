package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"fleetdeck/fleet"
)

// explained is what a script reads of `explain --json`.
type explained struct {
	Tree      string         `json:"tree"`
	Spelling  string         `json:"spelling"`
	Occupancy fleet.Occupied `json:"occupancy"`
	Holder    *struct {
		Kind       string           `json:"kind"`
		ID         string           `json:"id"`
		Path       string           `json:"path"`
		Dispatcher fleet.Dispatcher `json:"dispatcher"`
		RemainingS float64          `json:"remaining_s"`
		EndedBy    string           `json:"ended_by"`
	} `json:"holder"`
	Entries []struct {
		Tree      string        `json:"tree"`
		ID        string        `json:"id"`
		Verdict   fleet.Verdict `json:"verdict"`
		Droppable bool          `json:"droppable"`
		Why       string        `json:"why"`
	} `json:"entries"`
	Slots []struct {
		Role  string       `json:"role"`
		Free  int          `json:"free"`
		Slots []fleet.Slot `json:"slots"`
	} `json:"slots"`
	Dispatch struct {
		Outcome  string     `json:"outcome"`
		Code     fleet.Code `json:"code"`
		Message  string     `json:"message"`
		ExitCode int        `json:"exit_code"`
	} `json:"dispatch"`
	Advice []string `json:"advice"`
}

const explainable = agents + `
[[slots]]
name = "architect-1"
role = "architect"
profile = "worker"
`

func TestExplainForeseesWhatDispatchAnswers(t *testing.T) {
	full(t)
	t.Parallel()
	r := newRig(t, strings.Replace(explainable, `lock_wait = "10s"`, `lock_wait = "200ms"`, 1))
	r.must(nil, "up")
	worker := []string{"--profile", "worker"}
	architect := []string{"--profile", "worker", "--role", "architect"}
	for _, tt := range []struct {
		name    string
		prepare func(path string) (asked string, undo func())
		args    []string
		kind    string   // of the holder
		says    []string // in the text, with TREE for the tree
	}{
		{name: "free", args: worker, says: []string{"It is free", "would be accepted", "→ dispatch: fleetdeck dispatch TREE", "Role architect: 1 of 1 slots free."}},
		{name: "member", args: worker, kind: "member", prepare: func(path string) (string, func()) {
			r.dispatch(path, append(worker, "--wait")...)
			return filepath.Join(path, "sub"), nil
		}, says: []string{"a directory inside it", "It is occupied: member ", "by itself or by 'fleetdeck stop ", "--queue TREE", "--new-worktree BRANCH TREE"}},
		{name: "launch", args: worker, kind: "launch", prepare: func(path string) (string, func()) {
			r.dispatch(path, "--profile", "slow")
			return path, nil
		}, says: []string{"It is reserved: launch ", "written by fleetdeck dispatch (pid ", " left)", "the daemon ends it with all its processes", "its worker is not listed yet"}},
		{name: "reservation", args: worker, kind: "reservation", prepare: func(path string) (string, func()) {
			r.must(nil, "reserve", path, "--profile", "worker")
			link := path + ".link"
			os.Symlink(path, link)
			return link, nil
		}, says: []string{"a path through a symbolic link", "It is reserved: reservation ", "not the end of who wrote it", "It may not be dropped", "→ if you know that nobody comes: fleetdeck release TREE --id "}},
		{name: "expired reservation", args: worker, prepare: func(path string) (string, func()) {
			r.must(nil, "reserve", path, "--profile", "worker", "--grace", "1ms")
			return path, nil
		}, says: []string{"It is free", "expired", "It may be dropped: its grace ran out "}},
		{name: "foreign entry that is invalid", args: worker, prepare: func(path string) (string, func()) {
			r.entry(path, `{"expires_at":"2999-01-01T00:00:00Z"}`)
			return path, nil
		}, kind: "reservation", says: []string{"reservation without an id, until 2999-01-01 ", "whoever wrote it meant something"}},
		{name: "unknown profile", args: []string{"--profile", "none"}, says: []string{"would be refused now (profile_unknown), exit code 3"}},
		{name: "unknown role", args: []string{"--role", "none", "--profile", "worker"}, says: []string{"(role_unknown)"}},
		{name: "no slot of that profile", args: []string{"--role", "architect", "--profile", "slow"}, says: []string{"(slot_unconfigured)"}},
		{name: "slots taken", args: architect, prepare: func(path string) (string, func()) {
			other := r.repo("architect")
			r.dispatch(other, append(architect, "--wait")...)
			return path, nil
		}, says: []string{"(slot_unavailable)", "Role architect: 0 of 1 slots free: architect-1 bound by ", "It is free", "--queue TREE"}},
		{name: "no repository", args: worker, prepare: func(string) (string, func()) {
			path := filepath.Join(r.dir, "plain")
			os.Mkdir(path, 0o755)
			return path, nil
		}, says: []string{"exit code 2: ", "--no-git"}},
		{name: "no repository, and that is well", args: append(worker, "--no-git"), prepare: func(string) (string, func()) {
			path := filepath.Join(r.dir, "plain2")
			os.Mkdir(path, 0o755)
			return path, nil
		}, says: []string{"would be accepted"}},
		{name: "gone, with a reservation", args: worker, prepare: func(path string) (string, func()) {
			r.must(nil, "reserve", path, "--profile", "worker")
			os.RemoveAll(path)
			return path, nil
		}, kind: "reservation", says: []string{"exit code 7: ", "a path that is not there", "It is reserved: reservation "}},
		{name: "gone", args: worker, prepare: func(path string) (string, func()) {
			os.RemoveAll(path)
			return path, nil
		}, says: []string{"exit code 7: "}},
		{name: "corrupt file", args: worker, prepare: func(path string) (string, func()) {
			whole, _ := os.ReadFile(r.file())
			os.WriteFile(r.file(), []byte("{"), 0o600)
			return path, func() { os.WriteFile(r.file(), whole, 0o600) }
		}, says: []string{"which proves nothing", "The reservation file cannot be used", "(file_corrupt), exit code 8", "fleetdeck repair"}},
		{name: "daemon down", args: worker, prepare: func(path string) (string, func()) {
			r.must(nil, "down")
			return path, func() { r.must(nil, "up") }
		}, says: []string{"which proves nothing", "The daemon does not answer", "(daemon_unreachable), exit code 6", "→ start the daemon: fleetdeck up"}},
		{name: "daemon stopped", args: worker, prepare: func(path string) (string, func()) {
			pid := r.daemonPid()
			syscall.Kill(pid, syscall.SIGSTOP)
			return path, func() { syscall.Kill(pid, syscall.SIGCONT) }
		}, says: []string{"exit code 6", "kill -CONT"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := r.repo(strings.ReplaceAll(tt.name, " ", "-"))
			asked := path
			if tt.prepare != nil {
				var undo func()
				if asked, undo = tt.prepare(path); undo != nil {
					defer undo()
				}
			}
			text, stderr, code := r.fleetdeck(append([]string{"explain", asked}, tt.args...)...)
			if code != 0 {
				t.Fatalf("exit %d: %s", code, stderr)
			}
			var e explained
			r.must(&e, append([]string{"explain", asked}, tt.args...)...)
			for _, want := range tt.says {
				if want = strings.ReplaceAll(want, "TREE", e.Tree); !strings.Contains(text, want) {
					t.Errorf("it does not say %q", want)
				}
			}
			kind := ""
			if e.Holder != nil {
				kind = e.Holder.Kind
			}
			if kind != tt.kind {
				t.Errorf("held by %q, want %q", kind, tt.kind)
			}

			out, exit := r.dispatch(asked, tt.args...)
			if exit != e.Dispatch.ExitCode || out.Code != e.Dispatch.Code || out.Outcome != "" && out.Outcome != e.Dispatch.Outcome {
				t.Errorf("dispatch answers %d %s %s, foreseen was %+v", exit, out.Outcome, out.Code, e.Dispatch)
			}
			if t.Failed() {
				t.Logf("%s", text)
			}
		})
	}
}

// entry puts an entry into the reservation file as another program would.
func (r *rig) entry(tree, entry string) {
	r.t.Helper()
	doc := map[string]json.RawMessage{}
	data, err := os.ReadFile(r.file())
	if err == nil {
		err = json.Unmarshal(data, &doc)
	}
	if err == nil {
		doc[tree] = json.RawMessage(entry)
		data, err = json.Marshal(doc)
	}
	if err == nil {
		err = os.WriteFile(r.file(), data, 0o600)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

func TestExplainNamesWhoHoldsTheLockAndTakesNone(t *testing.T) {
	t.Parallel()
	r := newRig(t, agents)
	r.must(nil, "up")
	path := r.repo("api")
	r.must(nil, "reserve", path, "--profile", "worker", "--grace", "1ms")
	defer r.holdLock()()
	file, _ := r.fileState()
	text, stderr, code := r.fleetdeck("explain", path, "--profile", "worker")
	if after, _ := r.fileState(); after != file {
		t.Errorf("it changed the file to %s", after)
	}
	if code != 0 || !strings.Contains(text, "The admission lock is held by pid ") || !strings.Contains(text, "gives up with exit code 4") {
		t.Errorf("exit %d: %s%s", code, text, stderr)
	}
}

func TestExplainFindsATreeUnderItsOtherPaths(t *testing.T) {
	full(t)
	t.Parallel()
	r := newRig(t, agents)
	r.must(nil, "up")
	path := r.repo("api")
	for i, name := range r.spellings(path) {
		var e explained
		r.must(&e, "explain", name, "--profile", "worker")
		if e.Occupancy != fleet.Free || e.Dispatch.Outcome != fleet.Accepted {
			t.Errorf("%s: %+v", name, e)
		}
		if i == 0 {
			if e.Tree != path || e.Spelling != "its own path" {
				t.Errorf("%s: %+v", name, e)
			}
		}
	}
	r.must(nil, "reserve", path, "--profile", "worker")
	for _, name := range []string{"link-api", "bind-api"} {
		if name = filepath.Join(r.dir, name); !exists(filepath.Join(name, "sub")) {
			continue
		}
		var e explained
		if r.must(&e, "explain", name, "--profile", "worker"); len(e.Entries) != 1 || e.Entries[0].Tree != path || e.Entries[0].Droppable {
			t.Errorf("%s: %+v", name, e)
		}
	}
	r.must(nil, "release", path)
	out, _ := r.dispatch(path, "--profile", "worker", "--wait")
	for i, name := range []string{"link-api", "link-api/sub", "bind-api"} {
		name = filepath.Join(r.dir, name)
		if !exists(name) {
			t.Logf("%d: no %s here", i, name)
			continue
		}
		var e explained
		r.must(&e, "explain", name, "--profile", "worker")
		if e.Holder == nil || e.Holder.ID != out.Member || e.Holder.Path != path {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

func TestExplainMakesNoEventOfWhatItForesees(t *testing.T) {
	t.Parallel()
	r := newRig(t, agents)
	r.must(nil, "up")
	path := r.repo("api")
	dev, _ := r.dispatch(path, "--profile", "worker", "--wait")
	stdout, code := r.as(r.identity(dev.Member), "explain", "--json", r.repo("free"), "--profile", "worker")
	var e explained
	if err := json.Unmarshal([]byte(stdout), &e); err != nil || code != 0 {
		t.Fatalf("exit %d: %v: %s", code, err, stdout)
	}
	if e.Dispatch.Code != fleet.CodeNotAllowed || e.Dispatch.ExitCode != 3 {
		t.Errorf("%+v", e.Dispatch)
	}
	if n := r.refusals(); n != 0 {
		t.Errorf("%d events", n)
	}
}

func TestExplainDrawsNothingForeign(t *testing.T) {
	t.Parallel()
	r := newRig(t, agents)
	r.must(nil, "up")
	path := r.repo("api")
	r.must(nil, "reserve", path, "--profile", "worker")
	r.entry(path, fmt.Sprintf(`{"id":"x","expires_at":"2999-01-01T00:00:00Z","role":%q,"dispatcher":{"pid":1,"host":"h","program":"\u001b[2Jevil\nline"}}`, "dev\u202e"))
	text, _, _ := r.fleetdeck("explain", path, "--profile", "worker")
	if strings.ContainsAny(text, "\x1b\u202e") || strings.Contains(text, "\nline") || !strings.Contains(text, "evil") {
		t.Errorf("%q", text)
	}
}

func TestDiffCommandPrintsWhatDiffers(t *testing.T) {
	t.Parallel()
	r := newRig(t, agents)
	repo := r.committed("api")
	os.WriteFile(filepath.Join(repo, "file"), []byte("two\x1b[2J\n"), 0o644)
	os.WriteFile(filepath.Join(repo, "new"), nil, 0o644)
	if out, stderr, code := r.fleetdeck("diff", filepath.Join(repo, "sub")); code != 0 || !strings.Contains(out, "\n+two\x1b[2J\n") || !strings.HasSuffix(out, "? new\n") {
		t.Errorf("exit %d: %q %s", code, out, stderr)
	}
	if out, _, code := r.fleetdeck("diff", "--stat", repo); code != 0 || !strings.Contains(out, "file |") || strings.Contains(out, "two") {
		t.Errorf("--stat: exit %d: %q", code, out)
	}
	var doc struct{ Tree, Diff string }
	if r.must(&doc, "diff", repo); doc.Tree != repo || !strings.Contains(doc.Diff, "\n-one\n") {
		t.Errorf("--json: %+v", doc)
	}
	if _, _, code := r.fleetdeck("diff", filepath.Join(r.dir, "nowhere")); code != 7 {
		t.Errorf("a tree that is not there: exit %d", code)
	}
	if _, _, code := r.fleetdeck("diff", r.dir); code != 2 {
		t.Errorf("no repository: exit %d", code)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func TestAListOfNothingIsAnEmptyListInJSON(t *testing.T) {
	t.Parallel()
	r := newRig(t, agents)
	r.must(nil, "up")
	for _, list := range [][]string{{"members"}, {"trees"}, {"slots"}, {"reservations"}, {"queue", "ls"}} {
		if out, stderr, code := r.fleetdeck(append(list, "--json")...); code != 0 || strings.TrimSpace(out) != "[]" {
			t.Errorf("%v: exit %d, %q, %s, want []", list, code, out, stderr)
		}
	}
}
