package process_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/launch/process"
)

// roleEnv makes the test binary another process: see roles.
const roleEnv = "PROCESS_TEST_ROLE"

// roles are what the test binary can be. Each prints "up" once it is ready, and lives until it is ended.
var roles = map[string]func(){
	"idle": func() { up() },
	"stubborn": func() {
		signal.Ignore(syscall.SIGTERM)
		up()
	},
	// leaves a stubborn child in a session of its own and exits: nothing links the child to it but the environment.
	"abandon": func() {
		spawn("stubborn", &syscall.SysProcAttr{Setsid: true})
		os.Exit(0)
	},
	// replaces its program over and over, as the gate does once with the agent's, and stays after that.
	"replaced": func() {
		left, err := strconv.Atoi(os.Getenv("PROCESS_TEST_LEFT"))
		switch {
		case err != nil:
			left = 300
			up()
		case left == 0:
			fmt.Println("replaced")
			return
		}
		os.Setenv("PROCESS_TEST_LEFT", strconv.Itoa(left-1))
		runtime.Gosched() // by now there are several threads
		fmt.Println(syscall.Exec(os.Args[0], os.Args, os.Environ()))
	},
	// keeps a stubborn child in a session of its own.
	"family": func() {
		spawn("stubborn", &syscall.SysProcAttr{Setsid: true})
		up()
	},
	// answers TERM with a new stubborn child.
	"hydra": func() {
		term := make(chan os.Signal, 1)
		signal.Notify(term, syscall.SIGTERM)
		up()
		<-term
		spawn("stubborn", &syscall.SysProcAttr{Setsid: true})
		os.Exit(0)
	},
}

func up() { fmt.Println("up", os.Getpid()) }

// spawn starts a role with this process's output, and returns once it is up.
func spawn(role string, attr *syscall.SysProcAttr) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleEnv+"="+role)
	cmd.SysProcAttr = attr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	fmt.Print(line)
}

func TestMain(m *testing.M) {
	if role := os.Getenv(roleEnv); role != "" {
		roles[role]()
		time.Sleep(time.Hour)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// start runs a role with marker in its environment and gives the processes that reported to be up, the role's own
// process first. All are killed when the test ends.
func start(t *testing.T, role, marker string, ups int) []fleet.Process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleEnv+"="+role, marker)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	root := identify(t, cmd.Process.Pid)
	ps := []fleet.Process{root}
	t.Cleanup(func() {
		for _, p := range ps {
			process.Signal(p, syscall.SIGKILL)
		}
	})
	lines := bufio.NewScanner(out)
	for range ups {
		if !lines.Scan() {
			t.Fatalf("role %s ended before it was up", role)
		}
		pid, err := strconv.Atoi(strings.TrimPrefix(lines.Text(), "up "))
		if err != nil {
			t.Fatalf("role %s printed %q", role, lines.Text())
		}
		if pid != root.Pid {
			ps = append(ps, identify(t, pid))
		}
	}
	go cmd.Wait()
	return ps
}

func identify(t *testing.T, pid int) fleet.Process {
	t.Helper()
	p, err := process.Of(pid)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(60 * time.Second)
	for !cond() {
		if time.Now().After(deadline) {
			t.Fatalf("gave up waiting: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestAProcessWhoseProgramIsReplacedIsNeverTakenForDead(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleEnv+"=replaced")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	p := identify(t, cmd.Process.Pid)
	done := make(chan string, 1)
	go func() {
		var last string
		for lines := bufio.NewScanner(out); last != "replaced" && lines.Scan(); {
			last = lines.Text()
		}
		done <- last
	}()
	looks, dead := 0, 0
	for {
		select {
		case last := <-done:
			if last != "replaced" || dead > 0 {
				t.Errorf("of %d looks %d found a dead process; it printed %q at last", looks, dead, last)
			}
			return
		default:
		}
		if looks++; !process.Alive(p) {
			dead++
		}
	}
}

func TestAProcessIsMoreThanItsPid(t *testing.T) {
	self, err := process.Self()
	if err != nil {
		t.Fatal(err)
	}
	reused, rebooted := self, self
	reused.Start++
	rebooted.Boot = "another boot"
	tests := []struct {
		name string
		p    fleet.Process
		want bool
	}{
		{"itself", self, true},
		{"pid passed on", reused, false},
		{"other boot", rebooted, false},
		{"nobody", fleet.Process{}, false},
		{"group", fleet.Process{Pid: -self.Pid, Start: self.Start, Boot: self.Boot}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := process.Alive(tt.p); got != tt.want {
				t.Errorf("Alive(%+v) = %v, want %v", tt.p, got, tt.want)
			}
			if err := process.Signal(tt.p, 0); (err == nil) != tt.want {
				t.Errorf("Signal(%+v, 0) = %v, want success: %v", tt.p, err, tt.want)
			}
		})
	}
}

func TestAZombieIsNotAlive(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := identify(t, cmd.Process.Pid)
	eventually(t, "the child, which nobody waited for, counts as ended", func() bool { return !process.Alive(p) })
	if _, err := process.Of(p.Pid); err != nil {
		t.Errorf("Of(zombie) = %v, want it found", err)
	}
	cmd.Wait()
	if _, err := process.Of(p.Pid); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("Of(pid of nobody) = %v, want %v", err, os.ErrProcessDone)
	}
}

func TestNowIsOnThisBoot(t *testing.T) {
	a, b := process.Now(), process.Now()
	if a.Boot == "" || a.Boot != process.Boot() {
		t.Errorf("Boot = %q, want this boot's id %q", a.Boot, process.Boot())
	}
	if a.Mono <= 0 || b.Mono < a.Mono {
		t.Errorf("the monotonic clock went from %v to %v", a.Mono, b.Mono)
	}
	if host, _ := os.Hostname(); a.Host != host {
		t.Errorf("Host = %q, want %q", a.Host, host)
	}
}
