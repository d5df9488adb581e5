package cli_test

import (
	"os"
	"path/filepath"
	"testing"
)

func TestAMemberIsNamedByAnyPathOfATreeThatItHolds(t *testing.T) {
	t.Parallel()
	r := newRig(t, agents)
	r.must(nil, "up")
	main, lib := r.repo("main"), r.repo("lib")
	link := filepath.Join(r.dir, "link")
	if err := os.Symlink(lib, link); err != nil {
		t.Fatal(err)
	}
	out, code := r.dispatch(main, "--profile", "worker", "--also", lib, "--wait")
	if code != 0 {
		t.Fatalf("dispatch: exit %d: %s", code, out.Message)
	}
	for _, name := range []string{main, filepath.Join(main, "sub"), lib, filepath.Join(lib, "sub"), link} {
		if _, stderr, code := r.fleetdeck("screen", name); code != 0 {
			t.Errorf("screen %s: exit %d: %s", name, code, stderr)
		}
	}
	if _, _, code := r.fleetdeck("screen", r.repo("other")); code != 7 {
		t.Errorf("screen of a tree that it does not hold: exit %d", code)
	}
	r.must(nil, "stop", link)
}

// TestAnEmptyNameIsNobodys: a script whose variable is not set must not meet whoever is in its own directory.
func TestAnEmptyNameIsNobodys(t *testing.T) {
	t.Parallel()
	r := newRig(t, agents)
	r.must(nil, "up")
	main, free := r.repo("main"), r.repo("free")
	if out, code := r.dispatch(main, "--profile", "worker", "--wait"); code != 0 {
		t.Fatalf("dispatch: exit %d: %s", code, out.Message)
	}
	for _, tt := range []struct {
		name, dir string
		args      []string
		code      int
	}{
		{"stop", main, []string{"stop", ""}, 2},
		{"restart", main, []string{"restart", ""}, 2},
		{"send", main, []string{"send", "", "text"}, 7},
		{"dispatch", free, []string{"dispatch", "", "--profile", "worker"}, 2},
		{"also", main, []string{"dispatch", free, "--also", "", "--profile", "worker"}, 7},
		{"reserve", free, []string{"reserve", "", "--profile", "worker"}, 2},
		{"queue", free, []string{"queue", "add", "", "--task", "x"}, 2},
	} {
		cmd := r.command(tt.args...)
		cmd.Dir = tt.dir
		if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != tt.code {
			t.Errorf("%s: exit %d, want %d: %s", tt.name, cmd.ProcessState.ExitCode(), tt.code, out)
		}
	}
	if alive := r.alive(); len(alive) != 1 || alive[0].Tree != main {
		t.Errorf("alive: %+v", alive)
	}
}
