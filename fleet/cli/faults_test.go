package cli_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"fleetdeck/fleet"
)

// TestThePageOfFaultsNamesTestsThatExist keeps docs/faults.md true: every fault has its line, and every test that it names is there.
func TestThePageOfFaultsNamesTestsThatExist(t *testing.T) {
	t.Parallel()
	page := pageNamesTests(t, "faults.md", 50)
	lines := map[string]string{}
	for line := range strings.Lines(page) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 {
			continue
		}
		lines[strings.TrimSpace(cells[1])] = cells[3]
	}
	var faults []string
	for n := 1; n <= 62; n++ {
		if n < 39 || n > 48 {
			faults = append(faults, strconv.Itoa(n))
		}
	}
	for n := 1; n <= 26; n++ {
		faults = append(faults, "S"+strconv.Itoa(n))
	}
	for _, n := range faults {
		if !namedTest.MatchString(lines[n]) && len(lines[n]) < 40 {
			t.Errorf("fault %s names no test, and does not say why it cannot happen: %q", n, lines[n])
		}
	}
}

var (
	namedTest    = regexp.MustCompile("`((?:Test|Fuzz)\\w+)`")
	declaredTest = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
)

// pageNamesTests wants each test that a page of docs names to be there, and at least so many. It gives the page.
func pageNamesTests(t *testing.T, name string, atLeast int) string {
	t.Helper()
	root := filepath.Join("..", "..")
	page, err := os.ReadFile(filepath.Join(root, "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		data, err := os.ReadFile(path)
		for _, m := range declaredTest.FindAllSubmatch(data, -1) {
			there[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := namedTest.FindAllStringSubmatch(string(page), -1)
	for _, m := range named {
		if !there[m[1]] {
			t.Errorf("%s: there is no %s", name, m[1])
		}
	}
	if len(named) < atLeast {
		t.Errorf("%s names %d tests, want at least %d", name, len(named), atLeast)
	}
	return string(page)
}

func TestATreeThatIsGoneIsShownAsMissing(t *testing.T) {
	t.Parallel()
	r := newRig(t, agents)
	r.must(nil, "up")
	path := r.repo("api")
	out, _ := r.dispatch(path, "--profile", "worker", "--wait")
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	if row := r.tree(path); !row.Missing || row.Occupancy != fleet.Taken || row.Member != out.Member {
		t.Errorf("%+v, want missing, and held by %s", row, out.Member)
	}
	if stdout, _, _ := r.fleetdeck("trees"); !strings.Contains(stdout, "missing") {
		t.Errorf("trees says %s", stdout)
	}
	if out, code := r.dispatch(path, "--profile", "worker"); code != 7 {
		t.Errorf("dispatch there: exit %d, %+v", code, out)
	}
	r.must(nil, "stop", out.Member)
}

func TestAFailedLaunchSaysItsLastWords(t *testing.T) {
	t.Parallel()
	r := newRig(t, agents+`
[profiles.complains]
command = ["sh", "-c", "echo the model is away; exit 9"]
ready = "pattern:never"
`)
	r.must(nil, "up")
	out, code := r.dispatch(r.repo("api"), "--profile", "complains", "--wait")
	if code != 3 || out.Code != fleet.CodeLaunchFailed || !strings.Contains(out.Message, "9") || !strings.Contains(out.Hint, "the model is away") {
		t.Errorf("exit %d, %+v", code, out)
	}
}
