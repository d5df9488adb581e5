package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// used is the processor time that a process has taken so far, to the hundredth of a second.
func used(pid int) time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	var sum time.Duration
	for _, f := range bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])[11:13] { // utime and stime
		n, _ := strconv.Atoi(string(f))
		sum += time.Duration(n) * 10 * time.Millisecond
	}
	return sum
}

// BenchmarkAtRest measures what the whole of the program costs while nothing happens: the console in a terminal, the daemon, and
// the holder of an idle agent, with fifty trees. One round is one second.
func BenchmarkAtRest(b *testing.B) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		b.Skipf("what a process uses is read from /proc: %v", err)
	}
	r := newRig(b, "roots = [\"DIR/src\"]\n"+agents)
	for i := range 50 {
		r.repo(fmt.Sprintf("tree-%02d", i))
	}
	r.must(nil, "up")
	if out, code := r.dispatch(filepath.Join(r.dir, "src", "tree-07"), "--profile", "worker"); code != 0 {
		b.Fatalf("dispatch: exit %d: %+v", code, out)
	}
	c := r.open(120, 40)
	c.shows("tree-07")
	c.shows("daemon up")

	pids := map[string]int{"console": c.cmd.Process.Pid, "daemon": r.daemonPid(), "holder": 0}
	for _, pid := range marked(r.state) {
		if strings.Contains(commandLine(pid), "holder") {
			pids["holder"] = pid
		}
	}
	if pids["holder"] == 0 {
		b.Fatal("the agent has no holder")
	}
	time.Sleep(8 * time.Second) // git looks at each tree for the first time
	before := map[string]time.Duration{}
	for name, pid := range pids {
		before[name] = used(pid)
	}
	wrote, began := len(c.output()), time.Now()
	for b.Loop() {
		time.Sleep(time.Second)
	}
	took := time.Since(began)
	for name, pid := range pids {
		b.ReportMetric(100*(used(pid)-before[name]).Seconds()/took.Seconds(), name+"-core-%")
	}
	b.ReportMetric(float64(len(c.output())-wrote), "bytes")
	b.ReportMetric(0, "ns/op") // the time is fixed
	b.Logf("written meanwhile: %q", c.output()[wrote:])
}
