package process_test

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/launch/process"
)

func TestEndTreeLeavesNobody(t *testing.T) {
	tests := []struct {
		name, role string
		ups        int
	}{
		{"one that heeds TERM", "idle", 1},
		{"one that ignores TERM", "stubborn", 1},
		{"a child in a session of its own", "family", 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ps := start(t, tt.role, "UNUSED=1", tt.ups)
			if err := process.EndTree(t.Context(), ps[0], "", 50*time.Millisecond); err != nil {
				t.Fatal(err)
			}
			for _, p := range ps {
				if process.Alive(p) {
					t.Errorf("process %d of the tree lives", p.Pid)
				}
			}
		})
	}
}

func TestEndTreeFindsByMarkerWhatADeadRootLeft(t *testing.T) {
	ps := start(t, "abandon", "FLEETDECK_MEMBER=left", 1)
	eventually(t, "the root exits", func() bool { return !process.Alive(ps[0]) })
	if err := process.EndTree(t.Context(), ps[0], "FLEETDECK_MEMBER=lef", 0); err != nil {
		t.Fatal(err)
	}
	if !process.Alive(ps[1]) {
		t.Fatal("a marker that is only a prefix ended a process of another")
	}
	if err := process.EndTree(t.Context(), ps[0], "FLEETDECK_MEMBER=left", 50*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if process.Alive(ps[1]) {
		t.Error("the process that the dead root left behind lives")
	}
}

func TestEndTreeFindsWhatWasForkedMeanwhile(t *testing.T) {
	const marker = "FLEETDECK_MEMBER=hydra"
	root := start(t, "hydra", marker, 1)[0]
	if err := process.EndTree(t.Context(), root, marker, 2*time.Second); err != nil {
		t.Fatal(err)
	}
	if left := process.Marked(marker); len(left) > 0 {
		t.Errorf("processes %v live, forked after TERM", left)
	}
}

func TestEndTreeSparesOthersAndItself(t *testing.T) {
	const marker = "FLEETDECK_MEMBER=spare"
	t.Setenv("FLEETDECK_MEMBER", "spare")
	other := start(t, "idle", "FLEETDECK_MEMBER=other", 1)[0]
	reused := other
	reused.Start++
	for _, root := range []fleet.Process{{}, reused} {
		if err := process.EndTree(t.Context(), root, marker, 0); err != nil {
			t.Fatal(err)
		}
	}
	if !process.Alive(other) {
		t.Error("a process that is not of the tree was ended")
	}
	self, err := process.Self()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.EndTree(t.Context(), self, "", time.Second); err != nil {
		t.Fatal(err)
	}
	if process.Alive(other) {
		t.Error("a child lives after its parent ended all its descendants")
	}
}

func TestEndTreeGivesUpWithItsContext(t *testing.T) {
	root := start(t, "stubborn", "UNUSED=1", 1)[0]
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := process.EndTree(ctx, root, "", time.Hour); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("EndTree = %v, want %v", err, context.DeadlineExceeded)
	}
	if !process.Alive(root) {
		t.Error("the process was ended before its patience was over")
	}
}

func TestEndTreeEndsAStoppedProcess(t *testing.T) {
	root := start(t, "idle", "UNUSED=1", 1)[0]
	if err := syscall.Kill(root.Pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := process.EndTree(t.Context(), root, "", time.Hour); err != nil {
		t.Fatal(err)
	}
	if _, err := os.FindProcess(root.Pid); err == nil && process.Alive(root) {
		t.Error("a stopped process lives")
	}
}
