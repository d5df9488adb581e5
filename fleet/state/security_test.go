package state_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"fleetdeck/fleet/state"
)

// nobody is a user who is neither this one nor root.
const nobody = 65534

// TestNobodyElseCanPlantTheStateDirectory puts in place what another user could, before the first start, where everybody may write.
func TestNobodyElseCanPlantTheStateDirectory(t *testing.T) {
	foreign := func(t *testing.T, path string) {
		t.Helper()
		if os.Getuid() != 0 {
			t.Skip("not root: nothing can be given to another user")
		}
		if err := os.Lchown(path, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	mkdir := func(t *testing.T, path string, mode os.FileMode) {
		t.Helper()
		if err := errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name  string
		plant func(t *testing.T, tmp, path string)
		safe  bool
	}{
		{"nothing is there", func(*testing.T, string, string) {}, true},
		{"one's own directory", func(t *testing.T, _, path string) { mkdir(t, path, 0o700) }, true},
		{"one's own link", func(t *testing.T, tmp, path string) {
			mkdir(t, filepath.Join(tmp, "real"), 0o700)
			os.Symlink(filepath.Join(tmp, "real"), path)
		}, true},
		{"a directory of another user's", func(t *testing.T, _, path string) {
			mkdir(t, path, 0o700)
			foreign(t, path)
		}, false},
		{"a directory that the group can write to", func(t *testing.T, _, path string) { mkdir(t, path, 0o770) }, false},
		{"a directory that everybody can write to", func(t *testing.T, _, path string) { mkdir(t, path, 0o1777) }, false},
		{"another user's link to a directory of this user's", func(t *testing.T, tmp, path string) {
			mkdir(t, filepath.Join(tmp, "mine"), 0o700)
			os.Symlink(filepath.Join(tmp, "mine"), path)
			foreign(t, path)
		}, false},
		{"another user's link on the way of one's own link", func(t *testing.T, tmp, path string) {
			mkdir(t, filepath.Join(tmp, "mine"), 0o700)
			middle := filepath.Join(tmp, "middle")
			os.Symlink(filepath.Join(tmp, "mine"), middle)
			os.Symlink(middle, path)
			foreign(t, middle)
		}, false},
		{"a link to a directory of another user's", func(t *testing.T, tmp, path string) {
			mkdir(t, filepath.Join(tmp, "theirs"), 0o700)
			foreign(t, filepath.Join(tmp, "theirs"))
			os.Symlink(filepath.Join(tmp, "theirs"), path)
		}, false},
		{"a link that leads nowhere yet", func(t *testing.T, tmp, path string) { os.Symlink(filepath.Join(tmp, "none"), path) }, false},
		{"a file", func(t *testing.T, _, path string) { os.WriteFile(path, nil, 0o600) }, false},
		{"a place where everybody can rename it", func(t *testing.T, tmp, path string) {
			mkdir(t, path, 0o700)
			os.Chmod(tmp, 0o777)
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tmp := t.TempDir()
			if err := os.Chmod(tmp, 0o777|os.ModeSticky); err != nil { // as /tmp is
				t.Fatal(err)
			}
			path := filepath.Join(tmp, "state")
			tt.plant(t, tmp, path)
			dir, err := state.Open(path)
			if safe := err == nil; safe != tt.safe {
				t.Errorf("Open gives %+v, %v", dir, err)
			}
		})
	}
}
