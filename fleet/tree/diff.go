package tree

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// diffTimeout bounds one look at all that changed.
const diffTimeout = 30 * time.Second

// Diff gives what the tree at path holds beside its HEAD: the changes of tracked files, as a patch, then the names of
// untracked ones, each on a line after "? ". Of more than limit bytes, the whole lines that fit, and one that says so; zero is
// no limit.
//
// No program is run that the repository names, for showing differences or otherwise. What is in the files is not cleaned; names are quoted
// as git does.
func Diff(ctx context.Context, path string, limit int) (string, error) {
	return diffHead(ctx, path, limit, "--patch")
}

// DiffStat is Diff with a line for each changed file instead of the patch.
func DiffStat(ctx context.Context, path string, limit int) (string, error) {
	return diffHead(ctx, path, limit, "--stat=100")
}

func diffHead(ctx context.Context, path string, limit int, how string) (string, error) {
	base, err := commit(ctx, path, "HEAD")
	if errors.Is(err, errNoCommit) { // the empty tree is git's own word for "nothing", in the repository's kind of hash
		var out []byte
		out, err = git(ctx, path, "hash-object", "-t", "tree", "--stdin")
		base = strings.TrimSpace(string(out))
	}
	if err != nil {
		return "", fmt.Errorf("diff of %s: %w", path, err)
	}
	return diff(ctx, path, base, limit, how)
}

// diff gives what the tree at path holds beside the commit base.
func diff(ctx context.Context, path, base string, limit int, how string) (string, error) {
	quoting := []string{"-c", "core.quotePath=true"}
	changes := append(slices.Clone(quoting), "diff", "--no-color", "--no-ext-diff", "--no-textconv", "--submodule=short", "--ignore-submodules=dirty", how, base, "--")
	out, cut, err := call{dir: path, args: changes, timeout: diffTimeout, limit: limit, alone: true, reads: true}.run(ctx)
	if err != nil {
		return "", fmt.Errorf("diff of %s: %w", path, err)
	}
	var b strings.Builder
	b.Write(out)
	if !cut {
		others := append(slices.Clone(quoting), "ls-files", "--others", "--exclude-standard", "--full-name", ":/")
		out, cut, err = call{dir: path, args: others, timeout: diffTimeout, limit: limit}.run(ctx)
		if err != nil {
			return "", fmt.Errorf("untracked files of %s: %w", path, err)
		}
		for name := range strings.Lines(string(out)) {
			b.WriteString("? " + name)
		}
	}
	text := b.String()
	if limit > 0 && (cut || len(text) > limit) {
		text = text[:min(limit, len(text))]
		text = text[:strings.LastIndexByte(text, '\n')+1]
		text += fmt.Sprintf("… cut at %d bytes: there is more\n", limit)
	}
	return text, nil
}
