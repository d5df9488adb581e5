package tree

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Facts are what lists show of a tree beside its occupancy.
type Facts struct {
	Branch string
	// Dirty says that something differs from HEAD or is untracked.
	Dirty bool
	// Upstream is the branch that it is compared with, empty where it has none; Ahead and Behind count the commits that only one of
	// both has.
	Upstream      string
	Ahead, Behind int
	// Repo is the main working tree of its repository, or the repository itself where that is bare.
	Repo string
	// Missing says that the directory is gone.
	Missing bool
}

const (
	// factsAge is how long dirt is believed while neither HEAD nor the index changes.
	factsAge = 10 * time.Second
	// factsAtOnce bounds the git processes that only serve display.
	factsAtOnce = 2
)

// Observer keeps the facts of trees. It is safe for use by several goroutines.
type Observer struct {
	slots chan struct{}

	mu    sync.Mutex // guards known
	known map[string]*observed
}

type observed struct {
	facts   Facts
	stamp   [3]time.Time // of HEAD, index and the last fetch
	read    time.Time
	reading bool
}

// NewObserver makes an observer that knows nothing yet.
func NewObserver() *Observer {
	return &Observer{slots: make(chan struct{}, factsAtOnce), known: map[string]*observed{}}
}

// Facts gives what is known of the tree at path: its branch read now, its dirt as last seen. If that is old,
// changed is called, from another goroutine, once it was looked at again and differs.
func (o *Observer) Facts(ctx context.Context, path string, changed func()) Facts {
	gitDir, ok := findGitDir(path)
	if !ok {
		_, err := os.Stat(path)
		return Facts{Missing: err != nil}
	}
	branch := readBranch(gitDir)
	stamp := [3]time.Time{modTime(filepath.Join(gitDir, "HEAD")), modTime(filepath.Join(gitDir, "index")), modTime(filepath.Join(gitDir, "FETCH_HEAD"))}

	o.mu.Lock()
	defer o.mu.Unlock()
	k := o.known[path]
	if k == nil {
		k = &observed{}
		o.known[path] = k
	}
	k.facts.Branch, k.facts.Repo = branch, repositoryOf(path, gitDir)
	if !k.reading && (k.stamp != stamp || time.Since(k.read) > factsAge) {
		k.reading = true
		go o.refresh(ctx, path, k, stamp, changed)
	}
	return k.facts
}

// Doubt makes the next [Observer.Facts] of the tree at path look again, however fresh what is known of it.
func (o *Observer) Doubt(path string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if k := o.known[path]; k != nil {
		k.read = time.Time{}
	}
}

// FactsNow looks at once, for callers that print and leave.
func FactsNow(ctx context.Context, path string) Facts {
	gitDir, ok := findGitDir(path)
	if !ok {
		_, err := os.Stat(path)
		return Facts{Missing: err != nil}
	}
	f, _ := status(ctx, path)
	f.Branch, f.Repo = readBranch(gitDir), repositoryOf(path, gitDir)
	return f
}

func (o *Observer) refresh(ctx context.Context, path string, k *observed, stamp [3]time.Time, changed func()) {
	select {
	case o.slots <- struct{}{}:
		defer func() { <-o.slots }()
	case <-ctx.Done():
		return
	}
	now, err := status(ctx, path)

	o.mu.Lock()
	was := k.facts
	if err == nil {
		k.facts.Dirty, k.facts.Upstream, k.facts.Ahead, k.facts.Behind = now.Dirty, now.Upstream, now.Ahead, now.Behind
	}
	differs := k.facts != was
	k.stamp, k.read, k.reading = stamp, time.Now(), false
	o.mu.Unlock()
	if differs && changed != nil {
		changed()
	}
}

// status asks git for dirt, and how the branch stands to its upstream.
func status(ctx context.Context, path string) (f Facts, err error) {
	args := []string{"status", "--porcelain=v2", "--branch", "-z", "--ignore-submodules=dirty"}
	out, _, err := call{dir: path, args: args, timeout: gitTimeout, reads: true}.run(ctx)
	for record := range strings.SplitSeq(string(out), "\x00") {
		if record == "" {
			continue
		}
		header, ok := strings.CutPrefix(record, "# ")
		if !ok {
			f.Dirty = true
			break // what follows is more of it
		}
		if name, ok := strings.CutPrefix(header, "branch.upstream "); ok {
			f.Upstream = name
		} else if counts, ok := strings.CutPrefix(header, "branch.ab "); ok {
			fmt.Sscanf(counts, "+%d -%d", &f.Ahead, &f.Behind)
		}
	}
	return f, err
}

// GitDir finds the git directory of the working tree whose top is path, without asking git.
func GitDir(path string) (dir string, ok bool) { return findGitDir(path) }

// findGitDir finds the git directory of the working tree whose top is path, also where .git is a file.
func findGitDir(path string) (string, bool) {
	dotGit := filepath.Join(path, ".git")
	info, err := os.Stat(dotGit)
	if err != nil {
		return "", false
	}
	if info.IsDir() {
		return dotGit, true
	}
	data, err := readSmall(dotGit)
	if err != nil {
		return "", false
	}
	dir, ok := strings.CutPrefix(strings.TrimRight(string(data), "\n"), "gitdir: ")
	if !ok {
		return "", false
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(path, dir)
	}
	return dir, true
}

// repositoryOf is the main working tree of the repository that the tree at path belongs to. Only a linked worktree's git
// directory says where the common one is.
func repositoryOf(path, gitDir string) string {
	common := commonDir(gitDir)
	if common == gitDir {
		return path
	}
	if filepath.Base(common) == ".git" {
		return filepath.Dir(common)
	}
	return common
}

// commonDir is the git directory that a linked worktree's shares with its repository, or gitDir where it is no linked worktree's.
func commonDir(gitDir string) string {
	data, err := readSmall(filepath.Join(gitDir, "commondir"))
	if err != nil {
		return gitDir
	}
	common := strings.TrimSpace(string(data))
	if !filepath.IsAbs(common) {
		common = filepath.Join(gitDir, common)
	}
	return common
}

// readBranch reads the branch from HEAD; a detached HEAD is the first seven digits of its commit.
func readBranch(gitDir string) string {
	data, err := readSmall(filepath.Join(gitDir, "HEAD"))
	if err != nil {
		return ""
	}
	head := strings.TrimSpace(string(data))
	if ref, ok := strings.CutPrefix(head, "ref: "); ok {
		return strings.TrimPrefix(ref, "refs/heads/")
	}
	if len(head) > 7 {
		return head[:7]
	}
	return head
}

func modTime(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}
