package fleet

import "time"

// Node is a host of a fleet of many, as the cluster knows it.
type Node struct {
	Name string `json:"node"`
	// Lost says that nothing was heard of its daemon for a while. Whether its members still run nobody knows: they keep their trees
	// and slots.
	Lost    bool   `json:"lost"`
	Host    string `json:"host"`
	Boot    string `json:"boot"`
	Version string `json:"version"`
	// Members are those that its daemon listed last, and those that hold trees and were not listed yet: of them no more is known than
	// what they hold.
	Members []Member `json:"members"`
	// Held are its trees that stand under a reservation, a launch or a member.
	Held []NodeTree `json:"held"`
}

// NodeTree is a tree of a node that is not free.
type NodeTree struct {
	Tree string `json:"tree"`
	ID   string `json:"reservation"`
	// State is "reserved", "launching" or "member".
	State string `json:"state"`
	// Member is the id of the member whose it is.
	Member     string     `json:"member,omitempty"`
	Role       Role       `json:"role"`
	Profile    string     `json:"profile"`
	Slot       string     `json:"slot,omitempty"`
	ReservedAt time.Time  `json:"reserved_at"`
	ExpiresAt  time.Time  `json:"expires_at"` // by the clock of the node; a member's is over
	Dispatcher Dispatcher `json:"dispatcher,omitzero"`
	// Fence is the revision at which the hold was made: of two holds of one tree or slot the later has the higher.
	Fence int64 `json:"fence"`
}

// ClusterInfo says how the cluster is that a fleet of many hosts keeps its reservations in, as one of them sees it.
type ClusterInfo struct {
	Fleet     string     `json:"fleet"`
	Node      string     `json:"node"` // this host
	Endpoints []Endpoint `json:"endpoints"`
	// Keeper is the host that keeps the fleet's staff; empty where none does.
	Keeper string `json:"keeper,omitempty"`
	// HeardAt is when any of them last answered; Error says why none does now.
	HeardAt time.Time `json:"heard_at,omitzero"`
	Error   string    `json:"error,omitempty"`
}

// Endpoint is one server of the cluster.
type Endpoint struct {
	URL       string  `json:"url"`
	Name      string  `json:"name,omitempty"`
	Version   string  `json:"version,omitempty"`
	Leader    bool    `json:"leader"`
	Revision  int64   `json:"revision,omitempty"`
	Bytes     int64   `json:"bytes,omitempty"` // of its database, in use
	LatencyMS float64 `json:"latency_ms,omitempty"`
	// Full says that the database has reached etcd's quota: what is written is refused until a hand has made room.
	Full  bool   `json:"full,omitempty"`
	Error string `json:"error,omitempty"`
}

// Trouble is what is wrong with the server, or nothing.
func (e Endpoint) Trouble() string {
	if e.Error == "" && e.Full {
		return "its database is full: it takes no more writes"
	}
	return e.Error
}
