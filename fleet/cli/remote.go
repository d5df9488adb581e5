package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"fleetdeck/fleet"
	"fleetdeck/fleet/config"
	"fleetdeck/fleet/plain"
)

// elsewhereError says that what a command is about is on another host: the command is to be run there.
type elsewhereError struct {
	s    *session
	node string
	// name is what it is called there.
	name string
	// text goes to the command's standard input there, of which textArgs tells it. No text of anybody's is part of a command line.
	text     *string
	textArgs []string
}

func (e *elsewhereError) Error() string {
	return fmt.Sprintf("%s is on node %s", e.name, e.node)
}

// anywhere is run, a command about the member or tree that its first argument names, wherever that is: where run finds that it is
// on another host, the command is run there, by ssh. Before it goes, may are asked of this host's daemon, since what an agent may not
// do here it may not do there.
func (g *globals) anywhere(run func(*cobra.Command, []string) error, may ...string) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		err := run(cmd, args)
		there, ok := err.(*elsewhereError)
		if !ok {
			return err
		}
		for _, what := range may {
			if err := there.s.may(what)(cmd.Context()); err != nil {
				return err
			}
		}
		return there.run(cmd, args[1:])
	}
}

// withText has err, where it says that a command is to be run elsewhere, bring text to that command's standard input.
func withText(err error, text string, args ...string) error {
	if there, ok := err.(*elsewhereError); ok {
		there.text, there.textArgs = &text, args
	}
	return err
}

func unreachable(err error) bool {
	r := fleet.RefusalOf(err)
	return r != nil && r.Code == fleet.CodeDaemonUnreachable
}

// treeElsewhere is an elsewhereError where name is NODE:PATH of another host.
func (s *session) treeElsewhere(name string) error {
	node, path := s.elsewhere(name)
	if node == "" {
		return nil
	}
	if s.here {
		return &notFoundError{fmt.Sprintf("%s is on node %s, and this command was sent to node %s", plain.Clean(name, 200), node, s.conf.Cluster.Node), "see that [cluster.hosts] names the right host"}
	}
	return &elsewhereError{s: s, node: node, name: path}
}

// memberElsewhere is an elsewhereError where name is the id, or the end of one that is unmistakable, of another host's member.
func (s *session) memberElsewhere(ctx context.Context, name string) error {
	if s.cluster == nil || s.here || len(name) < 4 || strings.ContainsAny(name, "/.~:") {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.conf.LockWait)
	defer cancel()
	nodes, err := s.cluster.Nodes(ctx)
	if err != nil {
		return err
	}
	var found []*elsewhereError
	for _, n := range nodes {
		for _, m := range n.Members {
			if n.Name != s.conf.Cluster.Node && strings.HasSuffix(m.ID, strings.ToUpper(name)) {
				found = append(found, &elsewhereError{s: s, node: n.Name, name: m.ID})
			}
		}
	}
	switch len(found) {
	case 0:
		return nil
	case 1:
		return found[0]
	}
	var ids []string
	for _, f := range found {
		ids = append(ids, f.node+":"+f.name)
	}
	slices.Sort(ids)
	return usagef("%s means more than one member: %s", name, strings.Join(ids, ", "))
}

// findOrElsewhere is findHere, or an elsewhereError.
func (s *session) findOrElsewhere(ctx context.Context, name string, here func(name string) (string, error)) (string, error) {
	if err := s.treeElsewhere(name); err != nil {
		return "", err
	}
	_, name = s.elsewhere(name)
	id, err := here(name)
	if err == nil || exitCode(err) != exitNotFound && !unreachable(err) {
		return id, err
	}
	if there := s.memberElsewhere(ctx, name); there != nil {
		return "", there
	}
	return "", err
}

// treeHere is the path of this host that name, a bare path or NODE:PATH, means. For a bare path nobody is asked.
func (g *globals) treeHere(name string) (path string, err error) {
	node, path, ok := strings.Cut(name, ":")
	if _, err := os.Lstat(name); err == nil || !ok || !filepath.IsAbs(path) || !config.IsClusterName(node) {
		return name, nil
	}
	s, err := g.open()
	if err != nil {
		return "", err
	}
	if err := s.treeElsewhere(name); err != nil {
		return "", err
	}
	_, path = s.elsewhere(name)
	return path, nil
}
