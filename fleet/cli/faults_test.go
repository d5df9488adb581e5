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
	root := filepath.Join("..", "..")
	page, err := os.ReadFile(filepath.Join(root, "docs", "faults.md"))
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		data, err := os.ReadFile(path)
		for _, m := range declared.FindAllSubmatch(data, -1) {
			there[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]string{}
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 {
			continue
		}
		lines[strings.TrimSpace(cells[1])] = cells[3]
	}
	named := regexp.MustCompile("`(Test\\w+)`")
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
		if !named.MatchString(lines[n]) && len(lines[n]) < 40 {
			t.Errorf("fault %s names no test, and does not say why it cannot happen: %q", n, lines[n])
		}
	}
	for _, m := range named.FindAllSubmatch(page, -1) {
		if !there[string(m[1])] {
			t.Errorf("there is no %s", m[1])
		}
	}
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
