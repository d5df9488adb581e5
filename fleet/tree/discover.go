package tree

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// discoverDepth is how far below a root trees are looked for.
const discoverDepth = 6

// skipped names directories that hold many files and no trees of their own.
var skipped = map[string]bool{
	"node_modules": true, ".cache": true, "target": true, ".venv": true, "__pycache__": true, "vendor": true,
}

// Discover gives the working trees below root, sorted: it stops at the top of each, follows no symbolic link and
// leaves out what it cannot read.
func Discover(root string) []string {
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		return nil
	}
	var found []string
	filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			if err != nil && d != nil && d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if path != root && skipped[d.Name()] {
			return fs.SkipDir
		}
		if _, err := os.Lstat(filepath.Join(path, ".git")); err == nil {
			if utf8.ValidString(path) {
				found = append(found, path)
			}
			return fs.SkipDir
		}
		if rel, err := filepath.Rel(root, path); err == nil && strings.Count(rel, string(filepath.Separator)) >= discoverDepth-1 {
			return fs.SkipDir
		}
		return nil
	})
	slices.Sort(found)
	return found
}
