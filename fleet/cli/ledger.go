package cli

import (
	"context"
	"fmt"
	"os"
	"strings"

	"fleetdeck/fleet"
	"fleetdeck/fleet/cluster"
	"fleetdeck/fleet/config"
	"fleetdeck/fleet/launch/process"
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
	now := process.Now()
	who := now.Machine
	if who == "" {
		who = now.Host
	}
	self := cluster.Presence{Daemon: who + ":" + s.dir.Path, Host: now.Host, Boot: now.Boot, Version: s.build.String()}
	if err := s.cluster.Join(ctx, self); err != nil {
		return nil, err
	}
	return func(ctx context.Context, trouble func(error)) { s.cluster.Attend(ctx, self, trouble) }, nil
}

// ofOneHost refuses a command that only means something where the reservations are a file of this host.
func (s *session) ofOneHost(why string) error {
	if s.cluster == nil {
		return nil
	}
	return fleet.Refuse(fleet.CodeBadRequest, "this fleet's reservations are in etcd at %s: %s", s.ledger.Path(), why)
}

// examineLedger says how what is not this host's file can be reached.
func (s *session) examineLedger(add func(level, hint, format string, args ...any)) {
	if s.cluster == nil {
		return
	}
	if entries, err := s.ledger.Read(); err != nil {
		add("fail", fmt.Sprintf("look at the end points in [cluster] of %s", s.conf.Path), "cluster: %v", err)
	} else {
		add("ok", "", "cluster %s: %d reservations of node %s", s.ledger.Path(), len(entries), s.conf.Cluster.Node)
	}
}
