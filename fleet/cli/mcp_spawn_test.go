package cli_test

import (
	"strings"
	"testing"

	"fleetdeck/fleet"
)

func TestAnAgentIsSpawnedOverSeveralTreesAndIntoANewWorktreeByTheTools(t *testing.T) {
	full(t)
	t.Parallel()
	for name, door := range doors {
		t.Run(name, func(t *testing.T) {
			r := newMCPRig(t)
			main, lib, web := r.committed("main"), r.repo("lib"), r.repo("web")
			operator := door(r, nil)
			over := r.call(operator, "fleet_spawn", map[string]any{"tree": main, "also": []string{lib, web}, "profile": "worker", "task": "", "wait": true})
			if over.Failed {
				t.Fatalf("spawn over three trees: %+v", over)
			}
			id, _ := over.Structured["member"].(string)
			if m := r.alive(); len(m) != 1 || len(m[0].Also) != 2 || m[0].Also[0].Path != lib || m[0].Also[1].Path != web {
				t.Errorf("members %+v, want %s over %s and %s", m, id, lib, web)
			}
			if who := r.call(door(r, r.identity(id)), "fleet_whoami", nil); who.Failed || !strings.Contains(who.Text, `"also":["`+lib+`","`+web+`"]`) {
				t.Errorf("whoami: %+v, want the further trees", who)
			}
			if list := r.call(operator, "fleet_list", nil); !strings.Contains(list.Text, `"also":["`+lib+`","`+web+`"]`) {
				t.Errorf("list: %+v, want the further trees", list)
			}

			free := r.repo("free")
			taken := r.call(operator, "fleet_spawn", map[string]any{"tree": free, "also": []string{web}, "profile": "worker", "task": ""})
			if wantRefusal(t, "one of them taken", taken, fleet.CodeTreeOccupied); !strings.Contains(taken.Text, web) {
				t.Errorf("%q does not name %s", taken.Text, web)
			}
			wantRefusal(t, "a relative one", r.call(operator, "fleet_spawn", map[string]any{"tree": free, "also": []string{"web"}, "profile": "worker", "task": ""}), fleet.CodeBadRequest)

			made := r.call(operator, "fleet_spawn", map[string]any{"tree": main, "branch": "side", "profile": "worker", "task": "", "wait": true})
			path, _ := made.Structured["tree"].(string)
			child, _ := made.Structured["member"].(string)
			if made.Failed || !strings.HasSuffix(path, "/side") || r.tree(path).Member != child {
				t.Fatalf("spawn into a new worktree: %+v, which is %+v", made, r.tree(path))
			}
			wantRefusal(t, "a branch that is checked out", r.call(operator, "fleet_spawn", map[string]any{"tree": main, "branch": "side", "profile": "worker", "task": ""}), fleet.CodeWorktreeRefused)

			if s := r.call(operator, "fleet_stop", map[string]any{"member": web}); s.Failed || s.Structured["member"] != id {
				t.Errorf("stop by a further tree: %+v, want %s", s, id)
			}
			if who := r.call(door(r, r.identity(child)), "fleet_whoami", nil); strings.Contains(who.Text, "also") {
				t.Errorf("whoami of one that holds a single tree: %+v", who)
			}
		})
	}
}

func TestAToolSendsNobodyBesideAForeignAgentUnlessThatIsWanted(t *testing.T) {
	t.Parallel()
	r := newRig(t, "roots = [\"src\"]\n"+agents)
	r.must(nil, "up")
	program, path := r.handStarted(), r.repo("api")
	r.byHand(program, path)
	r.awaitOccupancy(path, fleet.Foreign)
	session := doors["http"](r, nil)
	wantRefusal(t, "a foreign agent's tree", r.call(session, "fleet_spawn", map[string]any{"tree": path, "profile": "worker", "task": ""}), fleet.CodeTreeForeign)
	if s := r.call(session, "fleet_spawn", map[string]any{"tree": path, "profile": "worker", "task": "", "beside_foreign": true, "wait": true}); s.Failed {
		t.Errorf("beside it: %+v", s)
	}
}
