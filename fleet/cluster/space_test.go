package cluster

import (
	"fmt"
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
	again := api
	again.ID, again.Renew = held.ID, true
	if renewed := reserve(t, kite, again); renewed.ID != held.ID {
		t.Errorf("renewed as %+v, want %s", renewed, held.ID)
	}
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
		rel := ""
		for _, s := range l.sharing(fleet.Tree{Path: path}) {
			rel += s.Rel
		}
		if rel != want {
			t.Errorf("%s is %q of a space, want %q", path, rel, want)
		}
	}
}

// TestOneTreeOfASpaceIsOneHoweverAHostComesToIt reserves it on kite, and then on hosts that have the file system under another path and see
// another device.
func TestOneTreeOfASpaceIsOneHoweverAHostComesToIt(t *testing.T) {
	etcd := oneNode(t)
	disk, mnt := mounted(t)
	if err := os.Mkdir(mnt, 0o755); err != nil {
		t.Fatal(err)
	}
	beside := filepath.Dir(disk)
	for name, target := range map[string]string{"team": disk + "/team", "work": disk + "/team/api"} {
		if err := os.Symlink(target, filepath.Join(beside, name)); err != nil {
			t.Fatal(err)
		}
	}
	all, team := Space{"all", disk}, Space{"team", beside + "/team"} // which lies in the other, by a link
	for _, tt := range []struct {
		name    string
		spaces  []Space // of kite
		tree    string  // as somebody names it on kite
		other   Space   // of the other host
		there   string  // the same tree there
		called  string
		another string // is another tree there
	}{
		{"the outer of two spaces", []Space{all, team}, disk + "/team/api", Space{"all", mnt}, "/team/api", "@all:team/api", "/web"},
		{"the inner of two spaces", []Space{all, team}, disk + "/team/api", Space{"team", mnt}, "/api", "@team:api", "/team/api"},
		{"the outer of two spaces, named last", []Space{team, all}, disk + "/team/api", Space{"all", mnt}, "/team/api", "@all:team/api", "/web"},
		{"the inner of two spaces, named first", []Space{team, all}, disk + "/team/api", Space{"team", mnt}, "/api", "@team:api", "/team/api"},
		{"the root itself", []Space{all}, disk, Space{"all", mnt}, "", "@all:.", "/web"},
		{"a link from elsewhere", []Space{all}, beside + "/work", Space{"all", mnt}, "/team/api", "@all:team/api", "/web"},
		{"a link to the space itself", []Space{team}, beside + "/team", Space{"team", mnt}, "", "@team:.", "/api"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			kite := open(t, etcd.Endpoints(), func(o *Options) { o.Spaces = tt.spaces })
			crane := kite.again(t, func(o *Options) { o.Node, o.Spaces = "crane", []Space{tt.other} })
			attend(t, crane, "two")
			d := draft("")
			var err error
			if d.Tree, err = tree.Resolve(t.Context(), tt.tree, true); err != nil {
				t.Fatal(err)
			}
			held := reserve(t, kite, d)
			there := func(path string) ledger.Draft {
				d := draft(mnt + path)
				d.Tree.File = "999:" + fleet.FileID(fmt.Sprint(len(path)))
				return d
			}
			if _, err := crane.Reserve(t.Context(), window, there(tt.there), nobody); codeOf(err) != fleet.CodeTreeReserved || !strings.Contains(err.Error(), tt.called) {
				t.Errorf("reserve %s on the other host: %v, want %s that names %s", mnt+tt.there, err, fleet.CodeTreeReserved, tt.called)
			}
			reserve(t, crane, there(tt.another))
			if err := kite.Settle(t.Context(), window, held.ID); err != nil {
				t.Fatal(err)
			}
			reserve(t, crane, there(tt.there))
		})
	}
}
