package tree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// submodule is one that a tree's index names.
type submodule struct {
	path   string // below the tree
	commit string // the one that the index names
}

// gitAt asks git about the tree at path whose git directory is gitDir, wherever that believes its tree to be.
func gitAt(ctx context.Context, path, gitDir string, args ...string) ([]byte, error) {
	return git(ctx, path, append([]string{"--git-dir=" + gitDir, "--work-tree=" + path}, args...)...)
}

// submodules are those of the index of the tree at path. A tree without any costs no question to git.
func submodules(ctx context.Context, path, gitDir string) ([]submodule, error) {
	_, named := os.Lstat(filepath.Join(path, ".gitmodules"))
	_, kept := os.Lstat(filepath.Join(gitDir, "modules"))
	if named != nil && kept != nil {
		return nil, nil
	}
	out, err := gitAt(ctx, path, gitDir, "ls-files", "--stage", "-z")
	if err != nil {
		return nil, err
	}
	var subs []submodule
	for entry := range strings.SplitSeq(string(out), "\x00") {
		about, name, _ := strings.Cut(entry, "\t")
		if f := strings.Fields(about); len(f) == 3 && f[0] == "160000" {
			subs = append(subs, submodule{name, f[1]})
		}
	}
	return subs, nil
}

// uncommitted says what is not committed in the tree at path, or in a submodule of it: "changes", or what goes on. Git's own look
// into submodules needs them to be where they were made, and the tree may be aside: each is looked at by itself.
func uncommitted(ctx context.Context, path, gitDir string, trust bool) (string, error) {
	subs, err := submodules(ctx, path, gitDir)
	if err != nil {
		return "", err
	}
	ignore := "--ignore-submodules=none"
	if len(subs) > 0 {
		ignore = "--ignore-submodules=all"
	}
	status := []string{"--git-dir=" + gitDir, "--work-tree=" + path, "status", "--porcelain", "-z", "--untracked-files=normal", ignore}
	out, _, err := call{dir: path, args: status, timeout: gitTimeout, reads: true, trust: trust}.run(ctx)
	if err != nil {
		return "", err
	}
	what := ""
	if len(out) > 0 {
		what = "changes"
	}
	for _, p := range inProgress {
		if _, err := os.Lstat(filepath.Join(gitDir, p.file)); err == nil {
			what = p.what
		}
	}
	if what != "" || len(subs) == 0 {
		return what, nil
	}
	if out, err = gitAt(ctx, path, gitDir, "diff-index", "--cached", "-z", "--ignore-submodules=none", "HEAD", "--"); err != nil || len(out) > 0 {
		return "changes", err
	}
	for _, s := range subs {
		at := filepath.Join(path, s.path)
		subDir, ok := findGitDir(at)
		if !ok {
			continue // nothing is checked out there
		}
		if what, err = uncommitted(ctx, at, subDir, trust); err != nil {
			return "", err
		}
		if what != "" {
			return what + " in the submodule " + s.path, nil
		}
		head, err := gitAt(ctx, at, subDir, "rev-parse", "--verify", "--quiet", "HEAD")
		var said *gitError
		if err != nil && !errors.As(err, &said) {
			return "", err
		}
		if strings.TrimSpace(string(head)) != s.commit {
			return "another commit in the submodule " + s.path, nil
		}
	}
	return "", nil
}

// unpushed names a submodule of the tree at path that has commits which none of its remotes has, as far as is known here. What
// belongs to a linked worktree's submodules goes with it, branches and stashes too, also of those that are not checked out now.
func unpushed(ctx context.Context, path, gitDir string) (string, error) {
	subs, err := submodules(ctx, path, gitDir)
	if err != nil {
		return "", err
	}
	modules := filepath.Join(gitDir, "modules")
	dirs := map[string]string{} // the git directories, each with its name
	err = filepath.WalkDir(modules, func(at string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "HEAD" || d.IsDir() {
			return err
		}
		dir := filepath.Dir(at)
		if _, err := os.Lstat(filepath.Join(dir, "objects")); err == nil {
			dirs[dir] = strings.TrimPrefix(dir, modules+"/")
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	for _, s := range subs {
		at := filepath.Join(path, s.path)
		dir, ok := findGitDir(at)
		if !ok {
			continue
		}
		dirs[dir] = s.path
		if strings.HasPrefix(dir, modules+"/") {
			continue // so are those within it
		}
		if name, err := unpushed(ctx, at, dir); err != nil || name != "" {
			return filepath.Join(s.path, name), err
		}
	}
	for dir, name := range dirs {
		out, err := gitAt(ctx, dir, dir, "rev-list", "--max-count=1", "--exclude=refs/tags/*", "--exclude=refs/remotes/*", "--all", "--not", "--remotes")
		if err != nil || len(out) > 0 {
			return name, err
		}
	}
	return "", nil
}
