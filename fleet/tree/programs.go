package tree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
)

// maxSmall bounds what is read of a file that git keeps in a repository: whoever writes there may have put anything in its place.
const maxSmall = 1 << 20

// namesPrograms finds the beginning of a section that can name a filter or a hook, or take in another file that does.
var namesPrograms = regexp.MustCompile(`(?i)\[(filter|hook|include)`)

// withoutPrograms is the environment in which git starts no program that the repository of dir names: no hook, no monitor of the file
// system, nothing to fetch with, and no filter that is not the user's own. Filters concern only a git that reads files.
func withoutPrograms(ctx context.Context, dir string, reads bool) ([]string, error) {
	overrides := [][2]string{{"core.fsmonitor", "false"}, {"core.hooksPath", os.DevNull}}
	if reads && mayNamePrograms(dir) {
		own, err := ownPrograms(ctx, dir)
		if err != nil {
			return nil, err
		}
		overrides = append(overrides, own...)
	}
	env := []string{"GIT_ALLOW_PROTOCOL=none", "GIT_NO_LAZY_FETCH=1", "GIT_CONFIG_COUNT=" + strconv.Itoa(len(overrides))}
	for i, o := range overrides {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, o[0]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, o[1]))
	}
	return env, nil
}

// mayNamePrograms reports whether the repository's own configuration must be asked for filters. Most have none, and this costs no
// process.
func mayNamePrograms(dir string) bool {
	gitDir, ok := findGitDir(dir)
	if !ok {
		return true // it is a bare repository, or no top level
	}
	for _, path := range []string{filepath.Join(commonDir(gitDir), "config"), filepath.Join(gitDir, "config.worktree")} {
		data, err := readSmall(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil || namesPrograms.Match(data) {
			return true
		}
	}
	return false
}

// ownPrograms undoes what the repository's own configuration says of filters and hooks: what the user's says counts, if anything.
func ownPrograms(ctx context.Context, dir string) (overrides [][2]string, err error) {
	out, err := git(ctx, dir, "config", "--show-scope", "--null", "--get-regexp", `^(filter|hook)\.`)
	var said *gitError
	if errors.As(err, &said) && said.Stderr == "" {
		return nil, nil // there are none
	}
	if err != nil {
		return nil, err
	}
	var own []string
	users := map[string]string{}
	fields := strings.Split(string(out), "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		key, value, _ := strings.Cut(fields[i+1], "\n")
		switch fields[i] {
		case "local", "worktree":
			own = append(own, key)
		default:
			users[key] = value
		}
	}
	for _, key := range own {
		overrides = append(overrides, [2]string{key, users[key]})
		if section, ok := strings.CutPrefix(key, "hook."); ok {
			name := section[:max(0, strings.LastIndexByte(section, '.'))]
			overrides = append(overrides, [2]string{"hook." + name + ".enabled", "false"})
		}
	}
	return overrides, nil
}

// filters names the filters that only the configuration of the repository at dir has.
func filters(ctx context.Context, dir string) (names []string, err error) {
	if !mayNamePrograms(dir) {
		return nil, nil
	}
	own, err := ownPrograms(ctx, dir)
	for _, o := range own {
		if name, ok := strings.CutPrefix(o[0], "filter."); ok && o[1] == "" {
			if name, ok := strings.CutSuffix(name, ".smudge"); ok {
				names = append(names, name)
			} else if name, ok := strings.CutSuffix(name, ".process"); ok {
				names = append(names, name)
			}
		}
	}
	return names, err
}

// readSmall reads a file of a repository. What is no plain file is refused without being waited for, and what is too long as well.
func readSmall(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no plain file", path)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSmall+1))
	if err == nil && len(data) > maxSmall {
		err = fmt.Errorf("%s is longer than %d bytes", path, maxSmall)
	}
	return data, err
}
