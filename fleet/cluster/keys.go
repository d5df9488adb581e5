package cluster

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"fleetdeck/fleet"
)

// keys are the names of everything that one host's ledger keeps in etcd:
//
//	/fleetdeck/v1/FLEET/
//	    conf/slots                   the slot table in force
//	    node/NODE                    a host whose daemon runs              lease, kept alive by that daemon
//	    member/NODE/ID               a member as its daemon listed it last
//	    hold/NODE/ID                 the hold                             \
//	    tree/NODE/b64url(PATH)       the same hold, for each of its trees  | lease as long as the grace,
//	    dir/NODE/DEVICE:INODE        its id, for each directory            | none once it is bound, or 15 s
//	    tree/@SPACE/b64url(REL)      the same hold, and its id, for a      |
//	    dir/@SPACE/INODE             tree that hosts share                 |
//	    slot/ROLE/PROFILE/NAME       its id, where it needs a slot        /
//	    probe/NODE                   written by a check of the cluster     2 s
//	    order/NODE/ID                a dispatch that another host asks NODE for, and
//	    answer/NODE/ID               what it came to                       leases, in case that nobody takes them
//	    made/NODE/ID                 the worktree that was made for it, until it is admitted     1 h
//	    keeper/LEASE                 a candidate for the fleet's keeper    lease, kept alive by its process
//	    keep/b64url(TREE)            what the keepers remember of a tree that is kept staffed
//
// The keys of one hold are written, changed and deleted together, so that one look at its hold key tells of all of them. The path
// is encoded so that etcd's own tools show a key in one word.
type keys struct{ fleet, node string }

func (k keys) root() string  { return "/fleetdeck/v1/" + k.fleet + "/" }
func (k keys) slots() string { return k.root() + "conf/slots" }
func (k keys) here() string  { return k.at(k.node) }
func (k keys) holds() string { return k.allHolds() + k.node + "/" }

// of are the keys as the host node names them.
func (k keys) of(node string) keys { k.node = node; return k }

// treesHere and dirsHere are what the trees of this host, and their directories, begin with.
func (k keys) treesHere() string { return k.root() + "tree/" + k.node + "/" }
func (k keys) dirsHere() string  { return k.root() + "dir/" + k.node + "/" }

func (k keys) allSlots() string { return k.root() + "slot/" }
func (k keys) probe() string    { return k.root() + "probe/" + k.node }
func (k keys) allHolds() string { return k.root() + "hold/" }

func (k keys) at(node string) string {
	return k.root() + "node/" + node
}
func (k keys) members(node string) string {
	if node == "" {
		return k.root() + "member/"
	}
	return k.root() + "member/" + node + "/"
}
func (k keys) orders() string { return k.root() + "order/" + k.node + "/" }

func (k keys) order(node, id string) string {
	return k.root() + "order/" + node + "/" + url.PathEscape(id)
}
func (k keys) answer(node, id string) string {
	return k.root() + "answer/" + node + "/" + url.PathEscape(id)
}
func (k keys) allMade() string       { return k.root() + "made/" + k.node + "/" }
func (k keys) made(id string) string { return k.allMade() + url.PathEscape(id) }

func (k keys) keeper() string   { return k.root() + "keeper/" }
func (k keys) memories() string { return k.root() + "keep/" }
func (k keys) memory(tree string) string {
	return k.memories() + base64.RawURLEncoding.EncodeToString([]byte(tree))
}

func (k keys) hold(id string) string { return k.holds() + url.PathEscape(id) }
func (k keys) tree(path string) string {
	return k.root() + "tree/" + k.node + "/" + base64.RawURLEncoding.EncodeToString([]byte(path))
}
func (k keys) dir(f fleet.FileID) string { return k.root() + "dir/" + k.node + "/" + string(f) }
func (k keys) slotsOf(role fleet.Role, profile string) string {
	return k.allSlots() + url.PathEscape(role) + "/" + url.PathEscape(profile) + "/"
}
func (k keys) slot(role fleet.Role, profile, name string) string {
	return k.slotsOf(role, profile) + url.PathEscape(name)
}

// States of a hold.
const (
	reserved  = "reserved"
	launching = "launching"
	member    = "member"
)

// hold is what stands under one reservation id: its trees, and its slot.
type hold struct {
	ID    string `json:"id"`
	State string `json:"state"`
	// Member is the id of the member whose it is.
	Member string `json:"member,omitempty"`
	Node   string `json:"node"`
	// Trees begins with the tree that the agent is started in.
	Trees []fleet.Tree `json:"trees"`
	// Shared says which of them lie on file systems that hosts share.
	Shared     []shared         `json:"shared,omitempty"`
	Role       fleet.Role       `json:"role"`
	Profile    string           `json:"profile"`
	Slot       string           `json:"slot,omitempty"`
	Dispatcher fleet.Dispatcher `json:"dispatcher,omitzero"`
	ReservedAt time.Time        `json:"reserved_at"`
	// Deadline is the end of the grace as the host saw it that reserved; another host goes by the lease.
	Deadline fleet.Deadline `json:"deadline"`

	// What etcd says of its key: mod is the revision of its last change, fence that of its creation.
	mod, fence int64
	lease      clientv3.LeaseID
}

func decode(key, value []byte, mod, fence, lease int64) (*hold, error) {
	h := &hold{mod: mod, fence: fence, lease: clientv3.LeaseID(lease)}
	if err := json.Unmarshal(value, h); err != nil {
		return nil, fmt.Errorf("key %s is damaged: %w", key, err)
	}
	if h.ID == "" || len(h.Trees) == 0 {
		return nil, fmt.Errorf("key %s is damaged: it names no reservation, or no tree", key)
	}
	return h, nil
}

// in is the tree of h at path.
func (h *hold) in(path string) (fleet.Tree, bool) {
	for _, t := range h.Trees {
		if t.Path == path {
			return t, true
		}
	}
	return fleet.Tree{}, false
}

// remains is what was left of a grace at a moment, between two bounds.
type remains struct {
	at          fleet.Instant
	least, most time.Duration
}

func exactly(at fleet.Instant, left time.Duration) remains { return remains{at, left, left} }

// entry is h as a reservation of its tree t, of which r remains by its lease. Its own deadline is exact, to the host that reserved, as
// long as that has not stood still for so long that the lease ends before it.
func (h *hold) entry(t fleet.Tree, r remains) fleet.Entry {
	end := fleet.DeadlineAfter(r.at, r.least)
	if own := h.Deadline; own.Boot.ID == r.at.Boot && own.Remaining(r.at) <= r.most {
		end = own
	}
	return fleet.Entry{Tree: t.Path, Reservation: fleet.Reservation{
		ID: h.ID, Role: h.Role, Profile: h.Profile, Slot: h.Slot, File: t.File, Dispatcher: h.Dispatcher,
		ReservedAt: h.ReservedAt, ExpiresAt: end.Wall.Truncate(time.Millisecond), Boot: end.Boot,
	}}
}

// names are the keys of h.
func (k keys) names(h *hold) []string {
	names := []string{k.hold(h.ID)}
	for _, t := range h.Trees {
		names = append(names, k.tree(t.Path))
		if t.File != "" {
			names = append(names, k.dir(t.File))
		}
	}
	for _, s := range h.Shared {
		names = append(names, s.names(k)...)
	}
	if h.Slot != "" {
		names = append(names, k.slot(h.Role, h.Profile, h.Slot))
	}
	return names
}

// puts write all keys of h.
func (k keys) puts(h *hold, lease clientv3.LeaseID) ([]clientv3.Op, error) {
	value, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("encode hold %s: %w", h.ID, err)
	}
	var ops []clientv3.Op
	for _, name := range k.names(h) {
		v := h.ID
		if k.holdsValue(name) {
			v = string(value)
		}
		ops = append(ops, clientv3.OpPut(name, v, clientv3.WithLease(lease)))
	}
	return ops, nil
}

// holdsValue reports whether the key name holds a whole hold: the others of a hold have its id.
func (k keys) holdsValue(name string) bool {
	kind := strings.TrimPrefix(name, k.root())
	return strings.HasPrefix(kind, "hold/") || strings.HasPrefix(kind, "tree/")
}

// deletes delete all keys of h. One that a hand took away, and that is another's by now, stays.
func (k keys) deletes(h *hold) []clientv3.Op {
	var ops []clientv3.Op
	for _, name := range k.names(h) {
		ops = append(ops, k.delete(h, name))
	}
	return ops
}

func (k keys) delete(h *hold, name string) clientv3.Op {
	own := clientv3.Compare(clientv3.Value(name), "=", h.ID)
	if k.holdsValue(name) {
		own = clientv3.Compare(clientv3.ModRevision(name), "=", h.mod) // all were written at once
	}
	return clientv3.OpTxn([]clientv3.Cmp{own}, []clientv3.Op{clientv3.OpDelete(name)}, nil)
}

// unchanged holds as long as h stands as it was read.
func (k keys) unchanged(h *hold) clientv3.Cmp {
	return clientv3.Compare(clientv3.ModRevision(k.hold(h.ID)), "=", h.mod)
}

// absent holds as long as there is no such key.
func absent(key string) clientv3.Cmp { return clientv3.Compare(clientv3.CreateRevision(key), "=", 0) }
