package tree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

const (
	// gitTimeout bounds one question to git.
	gitTimeout = 5 * time.Second
	// maxStderr is how much of what git and its hooks complain about is kept.
	maxStderr = 16 << 10
)

// gitError is git's own refusal.
type gitError struct {
	Args   []string
	Stderr string
	Err    error
}

func (e *gitError) Error() string {
	return fmt.Sprintf("git %s: %v: %s", e.Args[0], e.Err, e.said())
}
func (e *gitError) Unwrap() error { return e.Err }

// said is the line of git's complaint that tells what is wrong: hooks and progress may stand before it.
func (e *gitError) said() string {
	first, _, _ := strings.Cut(strings.TrimSpace(e.Stderr), "\n")
	for line := range strings.Lines(e.Stderr) {
		if what, ok := strings.CutPrefix(line, "fatal: "); ok {
			return strings.TrimSpace(what)
		}
	}
	return first
}

// call is one run of git.
type call struct {
	dir     string
	args    []string
	timeout time.Duration
	// limit is how many bytes of output are wanted; git ends once it has written more. Zero means all.
	limit int
	// alone is for a run that may start programs of others (hooks, filters): it has no terminal that they could ask on, and ends
	// together with them.
	alone bool
	// reads says that git reads files of the tree, for which it would run filters.
	reads bool
	// trust lets git run the programs that the repository names. Otherwise it runs none.
	trust bool
}

// git asks git about dir, but not for what is in its files.
func git(ctx context.Context, dir string, args ...string) ([]byte, error) {
	out, _, err := call{dir: dir, args: args, timeout: gitTimeout}.run(ctx)
	return out, err
}

// run runs git with an environment in which no variable can name another repository. It says whether there was more
// output than its limit.
func (c call) run(ctx context.Context) (out []byte, more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", c.args...)
	cmd.Dir = c.dir
	cmd.Env = Environ(os.Environ())
	if !c.trust {
		without, err := withoutPrograms(ctx, c.dir, c.reads)
		if err != nil {
			return nil, false, err
		}
		cmd.Env = append(cmd.Env, without...)
	}
	cmd.WaitDelay = time.Second
	if c.alone {
		cmd.Env = append(cmd.Env, nobodyToAsk...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) } // git tidies up on it
		cmd.WaitDelay = 5 * time.Second
	}
	stdout, stderr := &capped{limit: c.limit}, &capped{limit: maxStderr, drop: true}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	err = cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) && cmd.ProcessState.Success() {
		err = nil // a hook left something running
	}
	if stdout.more {
		return stdout.kept.Bytes(), true, nil
	}
	if ctx.Err() != nil {
		return nil, false, fmt.Errorf("git %s in %s: %w", c.args[0], c.dir, ctx.Err())
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil, false, &gitError{Args: c.args, Stderr: stderr.kept.String(), Err: err}
	}
	if err != nil {
		return nil, false, fmt.Errorf("git %s: %w", c.args[0], err)
	}
	return stdout.kept.Bytes(), false, nil
}

// capped keeps the first bytes up to a limit, where there is one.
type capped struct {
	kept  bytes.Buffer
	limit int
	drop  bool // what is more is dropped, rather than an error that ends the writer
	more  bool
}

var errCapped = errors.New("more than was asked for")

func (c *capped) Write(p []byte) (int, error) {
	room := c.limit - c.kept.Len()
	if c.limit == 0 || len(p) <= room {
		return c.kept.Write(p)
	}
	c.kept.Write(p[:room])
	if c.drop {
		return len(p), nil
	}
	c.more = true
	return room, errCapped
}

// Environ is environ for git: without any GIT_ variable, speaking plainly, taking no optional lock and asking nobody.
func Environ(environ []string) []string {
	env := make([]string, 0, len(environ)+3)
	for _, kv := range environ {
		if !strings.HasPrefix(kv, "GIT_") && !strings.HasPrefix(kv, "LC_ALL=") && !strings.HasPrefix(kv, "LANGUAGE=") {
			env = append(env, kv)
		}
	}
	return append(env, "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0")
}

// nobodyToAsk lets whatever git or a hook would ask a person about fail instead.
var nobodyToAsk = []string{
	"GIT_EDITOR=false", "GIT_SEQUENCE_EDITOR=false", "GIT_ASKPASS=false", "SSH_ASKPASS_REQUIRE=never", "GCM_INTERACTIVE=never",
}
