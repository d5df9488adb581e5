package embedded

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"fleetdeck/fleet"
	"fleetdeck/fleet/launch"
)

// reportFd is where the gate finds the pipe to its holder.
const reportFd = 3

// report is what the gate tells its holder, one JSON document after another. The pipe's end without a failure means
// that the agent's program was entered.
type report struct {
	Passed  bool   `json:"passed,omitempty"`
	Receipt string `json:"receipt,omitempty"`
	Failure string `json:"failure,omitempty"`
}

// GateMain is the last gate, in the child that is to become the agent: it makes sure that it stands in the admitted
// tree, takes the receipt of the charter, and becomes the agent. It returns only if it gave up, with the exit code.
func GateMain(args []string) int {
	flags := flag.NewFlagSet("agent-exec", flag.ContinueOnError)
	dir := flags.String("dir", "", "the member's directory")
	if err := flags.Parse(args); err != nil {
		return launch.ExitGate
	}
	syscall.CloseOnExec(reportFd)
	out := json.NewEncoder(os.NewFile(reportFd, "report"))

	code, err := gate(*dir, func(receipt string) error {
		return out.Encode(report{Passed: true, Receipt: receipt})
	})
	fmt.Fprintf(os.Stderr, "fleetdeck: the agent was not started: %v\n", err)
	out.Encode(report{Failure: err.Error()}) // without a holder to read it there is nobody to tell
	return code
}

// gate becomes the agent of the spec in dir, or says why not. It calls passed just before.
func gate(dir string, passed func(receipt string) error) (code int, err error) {
	spec, err := readSpec(dir)
	if err != nil {
		return launch.ExitGate, err
	}
	if err := os.Chdir(spec.Tree.Path); err != nil {
		return launch.ExitGate, fmt.Errorf("enter the tree: %w", err)
	}
	if want := spec.Tree.File; !want.IsZero() {
		// Asked of "." and not of the path, which may name another directory by now.
		here, err := fileID(".")
		if err != nil {
			return launch.ExitGate, fmt.Errorf("look at %s: %w", spec.Tree.Path, err)
		}
		if here != want {
			return launch.ExitGate, fmt.Errorf("%s is not the directory that was admitted: another one took its place", spec.Tree.Path)
		}
	}
	receipt, err := handCharter(&spec)
	if err != nil {
		return launch.ExitGate, err
	}
	if err := passed(receipt); err != nil {
		return launch.ExitGate, fmt.Errorf("tell the holder: %w", err)
	}
	// A caught signal is reset by exec, an ignored one stays ignored: catching all undoes what nohup and the like
	// left in whoever started the holder.
	signal.Notify(make(chan os.Signal, 1))
	err = syscall.Exec(spec.Argv[0], spec.Argv, spec.Env)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return launch.ExitNotFound, fmt.Errorf("run %s: command, or the interpreter that it names, not found", spec.Argv[0])
	case errors.Is(err, syscall.E2BIG):
		err = fmt.Errorf("%w: hand over charter and task by file", err)
	}
	return launch.ExitNotExecutable, fmt.Errorf("run %s: %w", spec.Argv[0], err)
}

// handCharter reads the charter once, puts its text where the spec asks for it, and gives the receipt of those bytes.
func handCharter(spec *launch.Spec) (receipt string, err error) {
	if spec.CharterFile == "" {
		return "", nil
	}
	b, err := os.ReadFile(spec.CharterFile)
	if err != nil {
		return "", fmt.Errorf("read the charter: %w", err)
	}
	for _, list := range [][]string{spec.Argv, spec.Env} {
		for i, s := range list {
			if spec.CharterMark == "" || !strings.Contains(s, spec.CharterMark) {
				continue
			}
			if bytes.IndexByte(b, 0) >= 0 {
				return "", errors.New("the charter holds a NUL byte, which no argument can hold: hand it over by file")
			}
			list[i] = strings.ReplaceAll(s, spec.CharterMark, string(b))
		}
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}

// fileID names the directory at path, as package fleet writes it.
func fileID(path string) (fleet.FileID, error) {
	var st syscall.Stat_t
	if err := syscall.Stat(path, &st); err != nil {
		return "", err
	}
	return fleet.FileID(fmt.Sprintf("%d:%d", uint64(st.Dev), st.Ino)), nil
}
