package cli

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fleetdeck/fleet"
	"fleetdeck/fleet/config"
)

// sshLost is the code with which ssh ends where ssh itself failed.
const sshLost = 255

// maxRemoteArgs is how long a command line may be that a shell takes as one argument.
const maxRemoteArgs = 64 << 10

// remoteCommand is the word before the arguments that came from another host.
const remoteCommand = "remote-args"

// run runs the command on the host that e names, as the user's own ssh gets there. rest are its arguments behind the first.
//
// ssh hands a remote command to the shell of its user, whichever that is, as one text. So the arguments are encoded: the shell sees
// letters, digits, '-' and '_', of which no shell makes anything else.
func (e *elsewhereError) run(cmd *cobra.Command, rest []string) error {
	argv, err := e.argv(cmd, rest)
	if err != nil {
		return err
	}
	c := exec.Command(argv[0], argv[1:]...)
	c.Stderr = os.Stderr
	flush := func() error { return nil }
	if c.Stdout = os.Stdout; isTerminal(e.s.out) && cmd.Name() != "attach" && !colored(cmd) {
		// The other host prints for a pipe.
		c.Stdout, flush = plainPipe(os.Stdout)
	}
	switch {
	case cmd.Name() == "attach":
		c.Stdin = os.Stdin
	case e.text != nil:
		c.Stdin = strings.NewReader(*e.text)
	}
	code, err := runPassingSignals(c)
	if ferr := flush(); err == nil {
		err = ferr
	}
	switch {
	case err != nil:
		return e.lost(err)
	case code == sshLost:
		return e.lost(errors.New("ssh ended with code 255"))
	case code != 0:
		return exitError(code)
	}
	e.s.printed = true // there
	return nil
}

func (e *elsewhereError) lost(err error) error {
	return fleet.Refuse(fleet.CodeDaemonUnreachable, "node %s was not reached by ssh: %w", e.node, err).
		WithHint("try '%s %s true'; [cluster.hosts] says which host a node is", strings.Join(e.s.conf.Cluster.SSH, " "), e.host())
}

// host is where ssh finds the node.
func (e *elsewhereError) host() string {
	if host := e.s.conf.Cluster.Hosts[e.node]; host != "" {
		return host
	}
	return e.node
}

// argv is the call of ssh.
func (e *elsewhereError) argv(cmd *cobra.Command, rest []string) ([]string, error) {
	if !config.IsClusterName(e.node) { // as the cluster tells it: it may look like an option
		return nil, fleet.Refuse(fleet.CodeBadRequest, "node %q of the cluster has no name that ssh could be given", e.node)
	}
	args := []string{cmd.Name(), "--here"}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		switch f.Name {
		case "state", "config", "task", "task-file": // this host's, or text
		default:
			args = append(args, "--"+f.Name+"="+f.Value.String())
		}
	})
	if e.text != nil {
		rest = nil
	}
	for i, arg := range e.textArgs {
		if strings.HasPrefix(arg, "--") {
			args = append(args, arg)
			continue
		}
		rest = append(rest, e.textArgs[i:]...)
		break
	}
	args = append(append(args, "--", e.name), rest...)
	word := base64.RawURLEncoding.EncodeToString([]byte(strings.Join(args, "\x00")))
	if len(word) > maxRemoteArgs {
		return nil, usagef("these arguments are too long to be sent to node %s", e.node)
	}
	c := e.s.conf.Cluster
	argv := append([]string{}, c.SSH...)
	if cmd.Name() == "attach" {
		argv = append(argv, "-t")
	}
	return append(argv, e.host(), c.SSHFleetdeck+" "+remoteCommand+" "+word), nil
}

// remoteArgs are the arguments that another host sent.
func remoteArgs(word string) ([]string, error) {
	data, err := base64.RawURLEncoding.DecodeString(word)
	if err != nil {
		return nil, fmt.Errorf("decode the arguments of another host: %w", err)
	}
	return strings.Split(string(data), "\x00"), nil
}

// colored reports whether colours were asked for, which a plain copy would lose.
func colored(cmd *cobra.Command) bool {
	f := cmd.Flags().Lookup("color")
	return f != nil && f.Value.String() == "true"
}

// plainPipe copies what is written to it to w, made plain. The second result waits for the rest.
func plainPipe(w io.Writer) (io.Writer, func() error) {
	r, in := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := copyPlain(w, r)
		r.CloseWithError(err)
		done <- err
	}()
	return in, func() error { in.Close(); return <-done }
}

// runPassingSignals runs c and gives its exit code, 128 and the signal's number where one ended it. What would end this program is
// passed on to it instead; a terminal sends its own to both.
func runPassingSignals(c *exec.Cmd) (code int, err error) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT)
	defer signal.Stop(signals)
	if err := c.Start(); err != nil {
		return 0, err
	}
	done := make(chan error, 1)
	go func() { done <- c.Wait() }()
	for {
		select {
		case sig := <-signals:
			if sig != syscall.SIGINT && sig != syscall.SIGQUIT || !isTerminal(os.Stdin) {
				c.Process.Signal(sig)
			}
		case err := <-done:
			var exit *exec.ExitError
			if !errors.As(err, &exit) {
				return 0, err
			}
			if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
				return 128 + int(ws.Signal()), nil
			}
			return exit.ExitCode(), nil
		}
	}
}
