package cli_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/book"
	"fleetdeck/fleet/book/booktest"
	"fleetdeck/fleet/launch/process"
	"fleetdeck/fleet/ledger"
)

var (
	figures = flag.Bool("figures", false, "measure what docs/performance.md tells, and print it as its tables; nothing fails by being slow")
	held    = flag.Int("held", 200, "how many agents -figures holds at once")
)

// TestFigures measures the program and, beside each thing, its floor or its rival: in one run and in turns, so that a busy
// machine slows them all. Its parts are run alone as TestFigures/admission and so on.
func TestFigures(t *testing.T) {
	if !*figures {
		t.Skip("it measures, and takes minutes: -figures")
	}
	if runtime.GOOS != "linux" {
		t.Skip("what processes use is read from /proc")
	}
	fmt.Printf("\n%s, %d cores, load %s, %s\n", time.Now().UTC().Format("2006-01-02 15:04"), runtime.NumCPU(), load(), runtime.Version())
	t.Run("admission", admissionFigures)
	t.Run("contention", contentionFigures)
	t.Run("held", heldFigures)
	t.Run("console", consoleFigures)
	t.Run("frames", frameFigures)
	fmt.Printf("\nload at the end %s\n", load())
}

func load() string {
	data, _ := os.ReadFile("/proc/loadavg")
	return strings.Join(strings.Fields(string(data))[:1], "")
}

// table prints one, in Markdown.
func table(title string, head []string, rows [][]string) {
	fmt.Printf("\n%s\n\n| %s |\n|%s\n", title, strings.Join(head, " | "), strings.Repeat(" --- |", len(head)))
	for _, r := range rows {
		fmt.Printf("| %s |\n", strings.Join(r, " | "))
	}
}

// lasted is a duration as a table has it.
func lasted(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.2f ms", d.Seconds()*1e3)
	case d < time.Second:
		return fmt.Sprintf("%.0f ms", d.Seconds()*1e3)
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

func median(took []time.Duration) time.Duration { return percentile(took, 50) }

// admissionFigures sets one admission, which is a reservation and its release and so two changes of the file, against its
// floor and against the shell: with a disk below, and without.
func admissionFigures(t *testing.T) {
	places := map[string]string{"disk": t.TempDir()}
	if dir, err := os.MkdirTemp("/dev/shm", "fleetdeck-figures-"); err == nil {
		t.Cleanup(func() { os.RemoveAll(dir) })
		places["memory"] = dir
	}
	var rows [][]string
	for _, place := range []string{"disk", "memory"} {
		for _, n := range []int{10, 1000} {
			if places[place] != "" {
				rows = append(rows, admissionRow(t, filepath.Join(places[place], strconv.Itoa(n)), place, n))
			}
		}
	}
	table("One admission: a reservation and its release", []string{"file on", "entries", "fleetdeck", "its floor", "ratio (aim 1.3 and 3)", "flock(1) and jq", "ratio (aim 100)"}, rows)
}

func admissionRow(t *testing.T, dir, place string, n int) []string {
	const rounds, each = 15, 20
	contenders := []struct {
		name string
		once func()
		took []time.Duration
	}{
		{name: "book", once: bookAdmission(t, filledAt(t, filepath.Join(dir, "book"), n))},
		{name: "floor", once: floorAdmission(t, filledAt(t, filepath.Join(dir, "floor"), n))},
	}
	for range rounds {
		for i := range contenders {
			c := &contenders[i]
			for range each {
				begin := time.Now()
				c.once()
				c.took = append(c.took, time.Since(begin))
			}
		}
	}
	ours, floor := median(contenders[0].took), median(contenders[1].took)
	row := []string{place, strconv.Itoa(n), lasted(ours), lasted(floor), fmt.Sprintf("%.2f", ours.Seconds()/floor.Seconds())}
	shell, err := shellAdmission(filledAt(t, filepath.Join(dir, "shell"), n))
	if err != nil {
		t.Logf("NOT MEASURED against the shell: %v", err)
		return append(row, "not here", "")
	}
	var took []time.Duration
	for range 7 {
		begin := time.Now()
		if err := shell(); err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(begin))
	}
	return append(row, lasted(median(took)), fmt.Sprintf("%.0f", median(took).Seconds()/ours.Seconds()))
}

// filledAt is dir as a state directory with n entries in its file.
func filledAt(t *testing.T, dir string, n int) string {
	t.Helper()
	booktest.Fill(t, dir, n)
	return dir
}

func bookAdmission(t *testing.T, dir string) func() {
	b, err := book.Open(dir, process.Now)
	if err != nil {
		t.Fatal(err)
	}
	d := ledger.Draft{Tree: fleet.Tree{Path: "/home/kim/src/api", File: "64768:999999"}, Role: fleet.RoleDev, Profile: "claude", Grace: time.Minute}
	return func() {
		e, err := b.Reserve(t.Context(), patience, d, func(ctx) (fleet.Roster, error) { return fleet.Roster{}, nil })
		if err != nil {
			t.Fatal(err)
		}
		if _, ok, err := b.Release(t.Context(), patience, e.Tree, e.ID); err != nil || !ok {
			t.Fatal(ok, err)
		}
	}
}

// floorAdmission is the system calls that no program can do without that changes a file under flock(2) so that a crash
// leaves the old one or the new one: lock, read, write beside it, fsync, rename, fsync of the directory, unlock. Twice.
func floorAdmission(t *testing.T, dir string) func() {
	path := filepath.Join(dir, book.FileName)
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	change := func() {
		lock, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
		check(err)
		defer lock.Close()
		check(syscall.Flock(int(lock.Fd()), syscall.LOCK_EX))
		data, err := os.ReadFile(path)
		check(err)
		temp, err := os.OpenFile(path+".tmp", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		check(err)
		_, err = temp.Write(data)
		check(err)
		check(temp.Sync())
		check(temp.Close())
		check(os.Rename(path+".tmp", path))
		d, err := os.Open(dir)
		check(err)
		check(d.Sync())
		check(d.Close())
		check(syscall.Flock(int(lock.Fd()), syscall.LOCK_UN))
	}
	return func() { change(); change() }
}

// shellAdmission is what a script does with flock(1) and jq, without any fsync.
func shellAdmission(dir string) (func() error, error) {
	for _, tool := range []string{"sh", "flock", "jq"} {
		if _, err := exec.LookPath(tool); err != nil {
			return nil, err
		}
	}
	const script = `
set -e
exec 9>>"$1.lock"
flock 9
jq 'if .["/home/kim/src/api"] then halt_error else .["/home/kim/src/api"] = {id: "1", expires_at: (now + 90 | todate)} end' "$1" >"$1.tmp"
mv "$1.tmp" "$1"
flock -u 9
flock 9
jq 'if .["/home/kim/src/api"].id == "1" then del(.["/home/kim/src/api"]) else . end' "$1" >"$1.tmp"
mv "$1.tmp" "$1"
`
	return func() error {
		if out, err := exec.Command("sh", "-c", script, "sh", filepath.Join(dir, book.FileName)).CombinedOutput(); err != nil {
			return fmt.Errorf("the shell: %w: %s", err, out)
		}
		return nil
	}, nil
}

func contentionFigures(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const rounds = 3
	counts := []int{1, 2, 8, 32, 128}
	all := make([][]contended, len(counts))
	for range rounds {
		for i, n := range counts {
			all[i] = append(all[i], contentionRound(t, exe, n))
		}
	}
	var rows [][]string
	for i, n := range counts {
		var rates []int
		var refused int
		var took []time.Duration
		fewest := all[i][0].fewest
		for _, c := range all[i] {
			rates, refused, took, fewest = append(rates, int(float64(c.done)/contention.Seconds())), refused+c.refused, append(took, c.took...), min(fewest, c.fewest)
		}
		slices.Sort(rates)
		rows = append(rows, []string{strconv.Itoa(n), strconv.Itoa(rates[rounds/2]), lasted(median(took)), lasted(percentile(took, 99)), lasted(percentile(took, 100)), strconv.Itoa(refused), strconv.Itoa(fewest)})
	}
	table(fmt.Sprintf("Contention: processes that change one file for %s, each within %s", contention, contentionWindow),
		[]string{"processes", "changes a second", "half wait", "99 of 100 wait", "longest", "timed out", "fewest of one process"}, rows)
}

// frameFigures runs the benchmarks of the console over a made-up fleet.
func frameFigures(t *testing.T) {
	var rows [][]string
	for _, run := range []struct{ bench, rounds string }{{"Console/rest", "60x"}, {"Console/countdowns", "60x"}, {"HeldKey", "300x"}, {"HeldKey", "300x"}, {"HeldKey", "300x"}} {
		cmd := exec.Command("go", "test", "fleetdeck/tui", "-run", "xxx", "-bench", run.bench, "-benchtime", run.rounds)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v: %s", cmd, err, out)
		}
		for line := range bytes.Lines(out) {
			if f := strings.Fields(string(line)); len(f) > 2 && strings.HasPrefix(f[0], "Benchmark") {
				values := ""
				for i := 2; i+1 < len(f); i += 2 {
					if f[i+1] != "ns/op" {
						values += fmt.Sprintf("%s %s, ", f[i], f[i+1])
					}
				}
				rows = append(rows, []string{strings.TrimPrefix(f[0], "Benchmark"), f[1], strings.TrimSuffix(values, ", ")})
			}
		}
	}
	table("The console over a made-up fleet: at rest, with 50 countdowns, and a key held down with 10,000 trees, 1,000 members and 200 changes a second", []string{"", "rounds", "measured"}, rows)
}
