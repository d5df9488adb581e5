package tree_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"fleetdeck/fleet"
	"fleetdeck/fleet/tree"
)

// TestMain lets the test binary look at a bind mount in a mount namespace of its own.
func TestMain(m *testing.M) {
	if at := os.Getenv("TREE_TEST_BIND"); at != "" {
		bound(at)
		return
	}
	os.Exit(m.Run())
}

// bound mounts the tree at path at three places and prints which trees they are.
func bound(path string) {
	for from, to := range map[string]string{path: "whole", path + "/sub": "part", path + "/..": "above"} {
		at := path + "/../../" + to
		err := os.Mkdir(at, 0o755)
		if err == nil {
			err = syscall.Mount(from, at, "", syscall.MS_BIND|syscall.MS_REC, "")
		}
		if err != nil {
			fmt.Println("skip: mount:", err)
			return
		}
	}
	for _, at := range []string{path, path + "/../../whole", path + "/../../whole/sub", path + "/../../above/api/sub", path + "/../../part"} {
		t, err := tree.Resolve(context.Background(), at, true)
		fmt.Println(t.Path, t.File, err)
	}
}

func TestABindMountOfATreeIsThatTree(t *testing.T) {
	top := filepath.Join(tempDir(t), "src", "api")
	if err := os.Mkdir(filepath.Dir(top), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(repo(t), top); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(top, "sub", "f"), "")
	want := sameTree(t, top, top)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(exe)
	c.Env = append(os.Environ(), "TREE_TEST_BIND="+top)
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}},
	}
	if os.Getuid() == 0 {
		c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	}
	out, err := c.CombinedOutput()
	if err != nil || strings.HasPrefix(string(out), "skip") {
		t.Skipf("NO BIND MOUNTS WERE TRIED: this system does not let us mount: %v %s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != 5 {
		t.Fatalf("%s", out)
	}
	for i, line := range lines {
		var path, file, rest string
		fmt.Sscan(line, &path, &file, &rest)
		got := fleet.Tree{Path: path, File: fleet.FileID(file)}
		// A part that is mounted alone has no .git above it: it is no tree of git's there, and another directory.
		if alone := i == 4; got.Same(want) == alone {
			t.Errorf("%s: the same as %v is %t, want %t", line, want, !alone, alone)
		}
	}
}
