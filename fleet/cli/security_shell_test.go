package cli_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// probeEnv makes the test binary a program of a test's, before it is anything else.
const probeEnv = "FLEETDECK_TEST_PROBE"

func init() {
	what, arg, _ := strings.Cut(os.Getenv(probeEnv), ":")
	switch {
	case len(os.Args) > 1 && os.Args[1] == "agent-exec": // the gate, which has its agent's environment
	case what == "argv":
		os.Exit(noteArgv(arg))
	case what == "stranger":
		os.Exit(beStranger())
	case what == "impostor":
		os.Exit(beImpostor(arg))
	}
}

// noteArgv is an agent that writes down what it was given.
func noteArgv(dir string) int {
	task, err := os.ReadFile(os.Getenv("FLEETDECK_TASK_FILE"))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	data, err := json.Marshal(map[string][]byte{"whole": []byte(os.Args[1]), "part": []byte(os.Args[2]), "file": task, "tree": []byte(os.Getenv("FLEETDECK_TREE"))})
	path := filepath.Join(dir, os.Getenv("FLEETDECK_MEMBER"))
	if err == nil {
		err = os.WriteFile(path+".new", data, 0o600)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	select {}
}

// hostileTasks are texts that something would happen with if a shell, an option parser or a template saw them.
var hostileTasks = []string{
	"$(touch DIR/owned) `touch DIR/owned` ; touch DIR/owned & | > DIR/owned",
	"'; touch DIR/owned; '\" \"; touch DIR/owned; \"",
	"--help",
	"-c\ntouch DIR/owned",
	"line one\nline two\r\n\tthree \\ \\n \\\\",
	"{charter} {task_file} {session} %s %n ${IFS} ~ * ? [a] !! #",
	"\x1b[2J\x07\u202e \u200b é 漢",
}

func TestATaskAndAPathArriveByteForByteWhateverAShellWouldMakeOfThem(t *testing.T) {
	full(t)
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, `grace = "20s"
[profiles.argv]
command = ["`+exe+`", "{task}", "--task={task}"]
env = ["`+probeEnv+`=argv:DIR"]
`)
	r.must(nil, "up")
	for i, task := range hostileTasks {
		task = strings.ReplaceAll(task, "DIR", r.dir)
		// A name can hold all but a slash.
		tree := r.repo(fmt.Sprintf("%d %s", i, strings.ReplaceAll(task, "/", "_")))
		out, code := r.dispatch(tree, "--profile", "argv", "--task="+task)
		if code != 0 || out.Tree != tree {
			t.Errorf("task %q: exit %d, %+v", task, code, out)
			continue
		}
		var got map[string][]byte
		r.await("the agent says what it was given", func() bool {
			data, err := os.ReadFile(filepath.Join(r.dir, out.Member))
			return err == nil && json.Unmarshal(data, &got) == nil
		})
		for what, want := range map[string]string{"whole": task, "part": "--task=" + task, "file": task, "tree": tree} {
			if string(got[what]) != want {
				t.Errorf("%s: it got %q, want %q", what, got[what], want)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(r.dir, "owned")); err == nil {
		t.Error("a shell ran a part of a task")
	}
}

// The places that start a program, and what for. A new one is to be thought about, and named here and on docs/security.md.
var starters = map[string]string{
	"fleet/tree/git.go":                "git",
	"fleet/foreign/scan_other.go":      "lsof",
	"fleet/launch/tmux/tmux.go":        "tmux",
	"fleet/launch/embedded/begin.go":   "itself, as the gate",
	"fleet/launch/embedded/spawn.go":   "itself, as a holder",
	"fleet/launch/embedded/front.go":   "what the pane showed before",
	"fleet/launch/embedded/gate.go":    "the agent",
	"fleet/cluster/etcdrun/etcdrun.go": "of the tests",
	"fleet/cluster/netlab/netlab.go":   "of the tests",
	"fleet/cli/console_nodes.go":       "itself, for what is on another host",
	"fleet/cli/remote_run.go":          "ssh, for members and trees of other hosts",
	"fleet/cli/dispatch.go":            "the command of `fleetdeck lock`",
	"fleet/cli/tour.go":                "itself, of the demo",
	"fleet/cli/demo.go":                "git and itself, of the demo",
	"fleet/cli/console_acts.go":        "the operator's editor and shell, and itself",
	"fleet/cli/setup.go":               "git --version",
	"fleet/cli/daemon.go":              "itself, as the daemon",
}

// The places that name a shell: whom the operator asks for one, and the demo's agents.
var shells = map[string]string{
	"fleet/config/console.go":        "the operator's $EDITOR, which may be a command line, and $SHELL",
	"fleet/agent/shell.go":           "the profile shell",
	"fleet/cli/tour.go":              "a part of the demo's script",
	"fleet/cluster/netlab/netlab.go": "of the tests",
}

func TestOnlyKnownPlacesStartAProgramAndNoneOnATasksWayNamesAShell(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	started, named := map[string]bool{}, map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if strings.HasSuffix(filepath.Dir(name), "test") { // a package that only tests import
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if pkg, ok := n.X.(*ast.Ident); ok && slices.Contains([]string{
					"exec.Command", "exec.CommandContext", "os.StartProcess", "syscall.ForkExec", "syscall.Exec", "syscall.StartProcess", "unix.Exec", "unix.ForkExec", "plugin.Open",
				}, pkg.Name+"."+n.Sel.Name) {
					started[name] = true
				}
			case *ast.BasicLit:
				if slices.Contains([]string{`"sh"`, `"/bin/sh"`, `"bash"`, `"/bin/bash"`}, n.Value) && name != "fleet/foreign/names.go" {
					named[name] = true
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range started {
		if starters[name] == "" {
			t.Errorf("%s starts a program: what for?", name)
		}
	}
	for name := range named {
		if shells[name] == "" {
			t.Errorf("%s names a shell: what for?", name)
		}
	}
	if len(started) < 10 || len(named) < 2 {
		t.Errorf("hardly anything is found: %v, %v", started, named)
	}
}

func TestThePageOnSecurityNamesTestsThatExist(t *testing.T) {
	t.Parallel()
	pageNamesTests(t, "security.md", 25)
}

// A hostile repository through every command that looks at it: nothing of it is run.
func TestNoCommandRunsWhatARepositoryNames(t *testing.T) {
	t.Parallel()
	full(t)
	r := newRig(t, `grace = "20s"
trees = ["src/evil"]
[profiles.worker]
command = ["sleep", "600"]
`)
	repo := r.committed("evil")
	evil, marker := filepath.Join(r.dir, "evil"), filepath.Join(r.dir, "marker")
	if err := os.WriteFile(evil, []byte("#!/bin/sh\necho \"$@\" >> "+marker+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	r.hook(repo, "exec "+evil+" hook")
	for _, key := range []string{"core.fsmonitor", "core.pager", "core.sshCommand", "core.editor", "diff.external", "pager.diff", "pager.status"} {
		r.git(repo, "config", key, evil+" "+key)
	}
	if err := os.WriteFile(filepath.Join(repo, "file"), []byte("two\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	os.Remove(marker) // git config itself may have looked
	r.must(nil, "up")
	made := repo + ".worktrees/x"
	for _, args := range [][]string{
		{"trees"}, {"explain", repo}, {"diff", repo}, {"worktree", "ls", repo}, {"dispatch", repo, "--profile", "worker", "--wait"}, {"restart", repo},
		{"stop", repo}, {"dispatch", repo, "--new-worktree", "x", "--profile", "worker", "--wait"}, {"stop", made}, {"trees"},
		{"worktree", "rm", made, "--delete-branch"}, {"status"}, {"doctor"},
	} {
		if _, stderr, code := r.fleetdeck(args...); code != 0 {
			t.Errorf("%v: exit %d: %s", args, code, stderr)
		}
		if ran, err := os.ReadFile(marker); err == nil {
			t.Errorf("%v ran a program of the repository's: %s", args, ran)
			os.Remove(marker)
		}
	}
	r.git(repo, "status")
	if _, err := os.Stat(marker); err != nil {
		t.Error("a careless git runs nothing either: the test proves nothing")
	}
	if len(r.made(repo)) > 0 {
		t.Errorf("%v stays", r.made(repo))
	}
}
