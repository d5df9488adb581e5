package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/cluster"
	"fleetdeck/fleet/config"
	"fleetdeck/fleet/daemon"
	"fleetdeck/fleet/launch/process"
	"fleetdeck/fleet/tree"
)

// chooseLedger is the one place where a fleet of one host and one of many part: everything else asks s.ledger.
func (s *session) chooseLedger() error {
	c := s.conf.Cluster
	if c == nil {
		s.ledger = s.book
		return nil
	}
	o := cluster.Options{Endpoints: c.Endpoints, Fleet: c.Fleet, Node: c.Node, Username: c.Username, Now: process.Now}
	for _, slot := range s.conf.Slots {
		o.Slots = append(o.Slots, fleet.Slot{Name: slot.Name, Role: slot.Role, Profile: slot.Profile})
	}
	for name, root := range c.Spaces {
		o.Spaces = append(o.Spaces, cluster.Space{Name: name, Root: root})
	}
	if c.PasswordFile != "" {
		password, err := os.ReadFile(c.PasswordFile)
		if err != nil {
			return &config.Error{Path: s.conf.Path, Msg: "cluster.password_file: " + err.Error()}
		}
		o.Password = strings.TrimRight(string(password), "\r\n")
	}
	if strings.HasPrefix(c.Endpoints[0], "https://") {
		var err error
		if o.TLS, err = cluster.TLS(c.CA, c.Cert, c.Key); err != nil {
			return &config.Error{Path: s.conf.Path, Msg: "cluster: " + err.Error()}
		}
	}
	s.cluster = cluster.New(o)
	s.ledger = s.cluster
	return nil
}

// attend is how the daemon keeps this host present among the fleet's: nil where that is one host.
func (s *session) attend(ctx context.Context) (func(context.Context, func(error)), error) {
	if s.cluster == nil {
		return nil, nil
	}
	self := s.presence()
	if err := s.cluster.Join(ctx, self); err != nil {
		return nil, err
	}
	return func(ctx context.Context, trouble func(error)) {
		var serving sync.WaitGroup
		serving.Go(func() {
			s.cluster.Serve(ctx, cluster.Service{Carry: s.carry, Recall: s.recall, Fate: s.fateHere}, trouble)
		})
		serving.Go(func() { s.publish(ctx) })
		s.cluster.Attend(ctx, self, trouble)
		serving.Wait()
		s.cluster.Unlist(context.WithoutCancel(ctx)) // where it fails the rows are shown as lost until this host is back
	}, nil
}

// fencing is how the daemon keeps the members that fill slots: nothing where the ledger gives no slot away.
func (s *session) fencing() daemon.Fencing {
	if s.cluster == nil {
		return daemon.Fencing{}
	}
	return daemon.Fencing{Span: s.conf.Cluster.SelfFence, Renew: s.cluster.Renew}
}

// presence is what this host says of itself to the cluster.
func (s *session) presence() cluster.Presence {
	now := process.Now()
	who := now.Machine
	if who == "" {
		who = now.Host
	}
	return cluster.Presence{Daemon: who + ":" + s.dir.Path, Host: now.Host, Boot: now.Boot, Version: s.build.String()}
}

// carry carries out what another host ordered, in the name of who did.
func (s *session) carry(ctx context.Context, o cluster.Order) (fleet.Outcome, error) {
	d := s.dispatcher("")
	d.Self, d.Ledger = o.From, s.cluster.Under(o.Fences...)
	out, err := d.Dispatch(ctx, o.Order)
	if err == nil && o.Wait {
		out, err = d.Wait(ctx, out)
	}
	return out, coded(err)
}

// coded gives err a code that its command's exit status can be told by on another host.
func coded(err error) error {
	switch {
	case errors.Is(err, tree.ErrNotFound):
		return fleet.Refuse(fleet.CodeNotFound, "%w", err)
	case errors.Is(err, tree.ErrNotTree), errors.Is(err, tree.ErrUnusable):
		return fleet.Refuse(fleet.CodeBadRequest, "%w", err)
	}
	return err
}

// recall finds out what became of an order that the daemon before this one took and did not answer.
func (s *session) recall(ctx context.Context, o cluster.Order) (fleet.Outcome, error) {
	d := s.dispatcher("")
	d.Self = o.From
	out, err := d.Recall(ctx, o.Order)
	if err == nil && o.Wait {
		out, err = d.Wait(ctx, out)
	}
	return out, err
}

// elsewhere says which other node's tree NODE:PATH is. A bare path, or this node's name before it, is a path of this host.
func (s *session) elsewhere(tree string) (node, path string) {
	name, rest, ok := strings.Cut(tree, ":")
	switch {
	case s.cluster == nil || !ok || !filepath.IsAbs(rest) || !config.IsClusterName(name):
		return "", tree
	case name == s.conf.Cluster.Node:
		return "", rest
	}
	return name, rest
}

// besides are the further trees of an agent on node, this one where it is empty. A bare path is one of the host that the agent is on.
func (s *session) besides(node string, also []string) (paths []string, err error) {
	for _, tree := range also {
		other, path := s.elsewhere(tree)
		if named := path != tree; named && other != node {
			return nil, usagef("an agent's trees are of one host: %s is not", tree)
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// ownTree is a tree of this host, for a command that is for those alone.
func (s *session) ownTree(tree string) (path string, err error) {
	node, path := s.elsewhere(tree)
	if node != "" {
		return "", usagef("%s is on node %s: run the command there", tree, node)
	}
	return path, nil
}

// sendElsewhere has node carry out order.
func (s *session) sendElsewhere(ctx context.Context, node string, order fleet.Order, opts dispatchOptions) (fleet.Outcome, error) {
	for _, path := range order.Also {
		if !filepath.IsAbs(path) {
			return fleet.Outcome{}, usagef("--also %s: a path on node %s must be absolute", path, node)
		}
	}
	if opts.queue || opts.from != "" {
		return fleet.Outcome{}, usagef("--queue and --from are for trees of this host: run the command on node %s", node)
	}
	if err := s.may("spawn")(ctx); err != nil {
		return fleet.Outcome{}, err
	}
	// Its daemon waits for etcd, then for its own socket, as long as each may take.
	patient := 2*s.conf.LockWait + sendMargin
	if opts.wait {
		grace := order.Grace
		if grace == 0 {
			grace = s.conf.Grace
		}
		patient += grace + sendMargin
	}
	ctx, cancel := context.WithTimeout(ctx, patient)
	defer cancel()
	return s.cluster.Send(ctx, s.conf.LockWait, node, cluster.Order{Order: order, Wait: opts.wait, From: s.dispatcher("fleetdeck dispatch").Self})
}

// sendMargin is how much longer than all its windows together another host may take to answer.
const sendMargin = 10 * time.Second

// ofOneHost refuses a command that only means something where the reservations are a file of this host.
func (s *session) ofOneHost(why string) error {
	if s.cluster == nil {
		return nil
	}
	return fleet.Refuse(fleet.CodeBadRequest, "this fleet's reservations are in etcd at %s: %s", s.ledger.Path(), why)
}

// examineLedger says how what is not this host's file can be reached.
func (s *session) examineLedger(ctx context.Context, add func(level, hint, format string, args ...any)) {
	if s.cluster == nil {
		return
	}
	entries, err := s.ledger.Read()
	if err != nil {
		add("fail", fmt.Sprintf("look at the end points in [cluster] of %s", s.conf.Path), "cluster: %v", err)
		return
	}
	add("ok", "", "cluster %s: %d reservations of node %s", s.ledger.Path(), len(entries), s.conf.Cluster.Node)
	for _, e := range s.cluster.Info(ctx).Endpoints {
		if trouble := e.Trouble(); trouble != "" {
			add("warn", "", "etcd at %s: %s", e.URL, trouble)
		}
	}
	asking, cancel := context.WithTimeout(ctx, s.conf.LockWait)
	defer cancel()
	for _, err := range []error{s.cluster.Join(asking, s.presence()), s.cluster.SlotsDiffer(asking)} {
		if err != nil {
			add("fail", hintOf(err), "cluster: %v", err)
		}
	}
	for name, root := range s.conf.Cluster.Spaces {
		if info, err := os.Stat(root); err != nil || !info.IsDir() {
			add("warn", "mount it, or mend its path", "space %s: no directory %s", name, root)
		}
	}
}

func hintOf(err error) string {
	if r := fleet.RefusalOf(err); r != nil {
		return r.Hint
	}
	return ""
}
