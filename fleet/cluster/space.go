package cluster

import (
	"encoding/base64"
	"path/filepath"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"fleetdeck/fleet"
	"fleetdeck/fleet/tree"
)

// Space is a file system that several hosts share, with the directory where this host has it. All must call it by one name.
type Space struct{ Name, Root string }

// shared says what a tree of a host is to all hosts. Its keys come on top of those that the host has for it: a tree that lies in a space is
// held once on all hosts that have the space.
type shared struct {
	// Tree is the path of the tree on its host.
	Tree  string `json:"tree"`
	Space string `json:"space"`
	// Rel is its path below the root: empty for a tree that lies elsewhere, and on the same file system.
	Rel string `json:"rel,omitempty"`
	// Inode names its directory on that file system, for every host: the device has another number on each.
	Inode string `json:"inode,omitempty"`
}

// name is what the tree is called on every host.
func (s shared) name() string { return "@" + s.Space + ":" + s.Rel }

// names are the keys that all hosts have for it.
func (s shared) names(k keys) (names []string) {
	if s.Rel != "" {
		names = append(names, k.spaceTree(s))
	}
	if s.Inode != "" {
		names = append(names, k.spaceDir(s))
	}
	return names
}

func (k keys) spaceTree(s shared) string {
	return k.root() + "tree/@" + s.Space + "/" + base64.RawURLEncoding.EncodeToString([]byte(s.Rel))
}
func (k keys) spaceDir(s shared) string { return k.root() + "dir/@" + s.Space + "/" + s.Inode }

// sharing says in which spaces t lies. Where they overlap, as by a link that no configuration shows, that is in all of them: another host
// may know but one. A root that is not there has nothing below it.
func (l *Ledger) sharing(t fleet.Tree) (all []shared) {
	dev, inode, known := strings.Cut(string(t.File), ":")
	for _, space := range l.Spaces {
		root, err := filepath.EvalSymlinks(space.Root)
		if err != nil {
			continue
		}
		s := shared{Tree: t.Path, Space: space.Name}
		if rel, err := filepath.Rel(root, t.Path); err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
			s.Rel = rel
		}
		// By another path, or on another host by a mount of its own, it is the same directory of the same file system.
		if file, err := tree.Identify(root); err == nil && known {
			if d, _, _ := strings.Cut(string(file), ":"); d == dev {
				s.Inode = inode
			}
		}
		if s.Rel != "" || s.Inode != "" {
			all = append(all, s)
		}
	}
	return all
}

// share notes in which spaces the trees of h lie.
func (l *Ledger) share(h *hold) {
	for _, t := range h.Trees {
		h.Shared = append(h.Shared, l.sharing(t)...)
	}
}

// looks read the keys of s.
func (s shared) looks(k keys) (ops []clientv3.Op) {
	for _, name := range s.names(k) {
		ops = append(ops, clientv3.OpGet(name))
	}
	return ops
}

// taken says who else holds one of the keys of s, which next reads.
func (s shared) taken(w *want, next func() *clientv3.GetResponse) error {
	var tree, dir []*mvccpb.KeyValue
	if s.Rel != "" {
		tree = next().Kvs
	}
	if s.Inode != "" {
		dir = next().Kvs
	}
	for _, kv := range tree {
		h, err := decode(kv.Key, kv.Value, kv.ModRevision, kv.CreateRevision, kv.Lease)
		if err != nil {
			return err
		}
		if h.ID != w.hold.ID {
			return h.inTheWay(fleet.Tree{Path: s.name()}, w.l.Now())
		}
	}
	for _, kv := range dir {
		if string(kv.Value) != w.hold.ID {
			return fleet.Refuse(fleet.CodeTreeReserved, "the directory of %s, which hosts share as @%s, is held under another path, by reservation %s", s.Tree, s.Space, kv.Value).
				WithHint("see 'fleetdeck members' for it")
		}
	}
	return nil
}
