package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fleetdeck/fleet"
	"fleetdeck/fleet/ledger"
	"fleetdeck/fleet/tree"
)

// mounted gives a directory that two hosts have, with the paths by which each has it.
func mounted(t *testing.T) (kite, crane string) {
	t.Helper()
	dir := t.TempDir()
	kite, crane = filepath.Join(dir, "disk"), filepath.Join(dir, "mnt")
	if err := os.MkdirAll(filepath.Join(kite, "team", "api"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(kite, "web"), 0o755); err != nil {
		t.Fatal(err)
	}
	return kite, crane
}

func treeAt(t *testing.T, real, path string) fleet.Tree {
	t.Helper()
	file, err := tree.Identify(real)
	if err != nil {
		t.Fatal(err)
	}
	return fleet.Tree{Path: path, File: file}
}

func TestATreeThatHostsShareIsHeldOnceOnAllOfThem(t *testing.T) {
	etcd := oneNode(t)
	disk, mnt := mounted(t)
	if err := os.Mkdir(mnt, 0o755); err != nil {
		t.Fatal(err)
	}
	// The hosts have the file system under other paths, and see another device.
	space := func(node, root string) func(*Options) {
		return func(o *Options) { o.Node, o.Spaces = node, []Space{{"nfs1", root}} }
	}
	kite := open(t, etcd.Endpoints(), space("kite", disk))
	crane := kite.again(t, space("crane", mnt))
	attend(t, crane, "two")
	heron := kite.again(t, func(o *Options) { o.Node, o.Spaces = "heron", nil })
	attend(t, heron, "three")

	api := draft("")
	api.Tree = treeAt(t, disk+"/team/api", disk+"/team/api")
	held := reserve(t, kite, api)
	// By its path below the root: crane knows another device.
	there := draft(mnt + "/team/api")
	there.Tree.File = "999:1"
	_, err := crane.Reserve(t.Context(), window, there, nobody)
	if codeOf(err) != fleet.CodeTreeReserved || !strings.Contains(err.Error(), "@nfs1:team/api") {
		t.Errorf("reserve on the other host: %v, want %s that names @nfs1:team/api", err, fleet.CodeTreeReserved)
	}
	// By its directory, under a path outside the root.
	moved := draft("")
	moved.Tree = fleet.Tree{Path: "/elsewhere/api", File: api.Tree.File}
	if _, err := crane.Reserve(t.Context(), window, moved, nobody); codeOf(err) != fleet.CodeTreeReserved || !strings.Contains(err.Error(), "another path") {
		t.Errorf("reserve the directory under another path on the other host: %v, want %s", err, fleet.CodeTreeReserved)
	}
	reserve(t, crane, draft(mnt+"/web"))
	reserve(t, heron, draft(disk+"/team/api")) // heron has no such space: there it is another tree

	bind(t, kite, held)
	if _, err := crane.Reserve(t.Context(), window, there, nobody); codeOf(err) != fleet.CodeTreeOccupied || !strings.Contains(err.Error(), "@nfs1:team/api on node kite") {
		t.Errorf("reserve on the other host while a member is there: %v, want %s that names the host", err, fleet.CodeTreeOccupied)
	}
	if err := kite.Vacate(t.Context(), window, held.ID); err != nil {
		t.Fatal(err)
	}
	second := reserve(t, crane, there)
	if err := crane.Settle(t.Context(), window, second.ID); err != nil {
		t.Fatal(err)
	}
	if n := kite.count(t, kite.keys.root()+"tree/@nfs1/"); n != 1 { // that of web
		t.Errorf("%d trees of the space are held, want one", n)
	}
	if n := kite.count(t, kite.keys.root()+"dir/@nfs1/"); n != 0 {
		t.Errorf("%d directories of the space are held, want none", n)
	}
}

func TestAnAgentOverSharedTreesHoldsAllOrNone(t *testing.T) {
	disk, _ := mounted(t)
	kite := open(t, oneNode(t).Endpoints(), func(o *Options) { o.Spaces = []Space{{"nfs1", disk}} })
	both := ledger.Draft{Tree: treeAt(t, disk+"/web", disk+"/web"), Also: []fleet.Tree{treeAt(t, disk+"/team/api", disk+"/team/api")}, Role: fleet.RoleDev, Profile: "shell", Grace: window}
	first := draft("")
	first.Tree = both.Also[0]
	held := reserve(t, kite, first)
	if _, err := kite.Reserve(t.Context(), window, both, nobody); codeOf(err) != fleet.CodeTreeReserved {
		t.Errorf("reserve both: %v, want %s", err, fleet.CodeTreeReserved)
	}
	if n := kite.count(t, kite.keys.root()+"tree/@nfs1/"); n != 1 {
		t.Errorf("%d trees of the space are held, want the first", n)
	}
	if err := kite.Vacate(t.Context(), window, held.ID); err != nil {
		t.Fatal(err)
	}
	reserve(t, kite, both)
	if n := kite.count(t, kite.keys.root()+"tree/@nfs1/"); n != 2 {
		t.Errorf("%d trees of the space are held, want both", n)
	}
}

func TestWhatLiesInASpaceIsNamedByItsRoot(t *testing.T) {
	t.Parallel()
	disk, mnt := mounted(t)
	if err := os.Symlink(disk, mnt); err != nil {
		t.Fatal(err)
	}
	l := &Ledger{Options: Options{Spaces: []Space{{"nfs1", mnt}, {"gone", "/nowhere"}}}} // its root is a link here
	for path, want := range map[string]string{
		disk + "/team/api": "team/api", disk: ".", disk + "/..x": "..x", disk + "-2": "", filepath.Dir(disk): "", "/nowhere/api": "",
	} {
		if s, _ := l.sharing(fleet.Tree{Path: path}); s.Rel != want {
			t.Errorf("%s is %q of space %q, want %q", path, s.Rel, s.Space, want)
		}
	}
}
