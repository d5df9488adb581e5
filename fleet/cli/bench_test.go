package cli_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/book"
	"fleetdeck/fleet/launch/process"
	"fleetdeck/fleet/ledger"
)

const (
	// contention is how long the processes of one round contend, contentionWindow the acquire window of each change.
	contention       = 3 * time.Second
	contentionWindow = 2 * time.Second

	contenderDir  = "FLEETDECK_BENCH_DIR"
	contenderTree = "FLEETDECK_BENCH_TREE"
)

// contender is a process of BenchmarkContention: it gives the exit code.
func contender() int {
	if err := contend(os.Getenv(contenderDir), os.Getenv(contenderTree), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// contend reserves and releases a tree of its own again and again, once it is told to begin, and then says how many changes
// it made, how many were refused for the window, and how long each took in microseconds, nearly all of which is waiting.
func contend(dir, tree string, in io.Reader, out io.Writer) error {
	b, err := book.Open(dir, process.Now)
	if err != nil {
		return err
	}
	draft := ledger.Draft{Tree: fleet.Tree{Path: tree}, Role: fleet.RoleDev, Profile: "shell", Grace: time.Minute}
	nobody := func(context.Context) (fleet.Roster, error) { return fleet.Roster{}, nil }
	fmt.Fprintln(out, "ready")
	if _, err := bufio.NewReader(in).ReadString('\n'); err != nil {
		return err
	}
	var done, refused int
	var took []int64
	change := func(make func() error) (ok bool, err error) {
		begin := time.Now()
		err = make()
		took = append(took, time.Since(begin).Microseconds())
		if r := fleet.RefusalOf(err); r != nil && r.Code == fleet.CodeLockBusy {
			refused++
			return false, nil
		}
		done++
		return true, err
	}
	for end := time.Now().Add(contention); time.Now().Before(end); {
		var e fleet.Entry
		ok, err := change(func() (err error) {
			e, err = b.Reserve(context.Background(), contentionWindow, draft, nobody)
			return err
		})
		for err == nil && ok {
			var dropped, gone bool
			dropped, err = change(func() (err error) {
				_, gone, err = b.Release(context.Background(), contentionWindow, e.Tree, e.ID)
				return err
			})
			if dropped {
				if err == nil && !gone {
					err = errors.New("its reservation was erased")
				}
				break
			}
		}
		if err != nil {
			return err
		}
	}
	fmt.Fprintln(out, done, refused, strings.Trim(fmt.Sprint(took), "[]"))
	return nil
}

// contended is what the processes of one round did together.
type contended struct {
	done, refused int
	fewest        int // changes of one process
	took          []time.Duration
}

// percentile is how long p of a hundred took at most.
func percentile(took []time.Duration, p int) time.Duration {
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	return took[max((len(took)*p+99)/100, 1)-1]
}

// BenchmarkContention lets n processes reserve and release trees of their own in one book for a fixed time.
func BenchmarkContention(b *testing.B) {
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	for _, n := range []int{2, 8, 32, 128} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			all := contended{fewest: -1}
			for b.Loop() {
				c := contentionRound(b, exe, n)
				all.done, all.refused, all.took = all.done+c.done, all.refused+c.refused, append(all.took, c.took...)
				if all.fewest < 0 || c.fewest < all.fewest {
					all.fewest = c.fewest
				}
			}
			rounds := float64(b.N)
			b.ReportMetric(float64(all.done)/contention.Seconds()/rounds, "changes/s")
			b.ReportMetric(percentile(all.took, 99).Seconds()*1000, "p99-wait-ms")
			b.ReportMetric(percentile(all.took, 100).Seconds()*1000, "longest-wait-ms")
			b.ReportMetric(float64(all.refused)/rounds, "refused")
			b.ReportMetric(float64(all.fewest), "fewest-per-process")
			b.ReportMetric(0, "ns/op") // the time is fixed
		})
	}
}

func contentionRound(b testing.TB, exe string, n int) contended {
	dir := b.TempDir()
	type rival struct {
		cmd *exec.Cmd
		in  io.WriteCloser
		out *bufio.Reader
	}
	rivals := make([]rival, n)
	for i := range rivals {
		cmd := exec.Command(exe, "-test.run=^$")
		cmd.Env = append(os.Environ(), contenderDir+"="+dir, contenderTree+"=/src/"+strconv.Itoa(i))
		in, err := cmd.StdinPipe()
		if err != nil {
			b.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			b.Fatal(err)
		}
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { in.Close(); cmd.Process.Kill(); cmd.Wait() })
		rivals[i] = rival{cmd, in, bufio.NewReader(out)}
	}
	for _, r := range rivals {
		if line, err := r.out.ReadString('\n'); line != "ready\n" {
			b.Fatalf("a contender says %q, %v", line, err)
		}
	}
	for _, r := range rivals {
		fmt.Fprintln(r.in, "go")
	}
	all := contended{fewest: -1}
	for _, r := range rivals {
		line, _ := r.out.ReadString('\n')
		fields := strings.Fields(line)
		if len(fields) < 2 {
			rest, _ := io.ReadAll(r.out)
			b.Fatalf("a contender says %s%s", line, rest)
		}
		done, err1 := strconv.Atoi(fields[0])
		refused, err2 := strconv.Atoi(fields[1])
		if err := errors.Join(err1, err2); err != nil {
			b.Fatal(err)
		}
		all.done, all.refused = all.done+done, all.refused+refused
		if all.fewest < 0 || done < all.fewest {
			all.fewest = done
		}
		for _, f := range fields[2:] {
			us, err := strconv.ParseInt(f, 10, 64)
			if err != nil {
				b.Fatal(err)
			}
			all.took = append(all.took, time.Duration(us)*time.Microsecond)
		}
		io.Copy(io.Discard, r.out)
		if err := r.cmd.Wait(); err != nil {
			b.Fatal(err)
		}
	}
	left, err := book.Open(dir, process.Now)
	if err != nil {
		b.Fatal(err)
	}
	if entries, err := left.Read(); err != nil || len(entries) > 0 {
		b.Fatalf("the book ends with %v, %v, want it whole and empty", entries, err)
	}
	return all
}
