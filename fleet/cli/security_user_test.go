package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const nobody = 65534

// attempt is what a stranger is to try at a path, and with what success.
type attempt struct {
	Path   string
	Socket bool
	Could  []string
}

// beStranger tries what it reads on stdin, as the user that it runs as.
func beStranger() int {
	var all []attempt
	if err := json.NewDecoder(os.Stdin).Decode(&all); err != nil {
		fmt.Println(err)
		return 1
	}
	for i := range all {
		a := &all[i]
		could := func(what string, err error) {
			if err == nil {
				a.Could = append(a.Could, what)
			}
		}
		if a.Socket {
			conn, err := net.Dial("unix", a.Path)
			could("connect", err)
			if err != nil {
				continue
			}
			// One may connect where a directory's owner lets one in; nothing is answered but a refusal.
			io.WriteString(conn, "GET /v1/roster HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
			answer, _ := io.ReadAll(conn)
			if strings.Contains(string(answer), " 200 ") {
				could("ask", nil)
			}
			conn.Close()
			continue
		}
		f, err := os.Open(a.Path)
		could("read", err)
		if err == nil {
			f.Close()
		}
		f, err = os.OpenFile(a.Path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		could("write", err)
		if err == nil {
			f.Close()
		}
		could("create beside", os.WriteFile(a.Path+".stranger", nil, 0o600))
		could("rename", os.Rename(a.Path, a.Path+".moved"))
	}
	return map[bool]int{true: 0, false: 1}[json.NewEncoder(os.Stdout).Encode(all) == nil]
}

// stranger lets another user try things.
func (r *rig) stranger(all []attempt) []attempt {
	r.t.Helper()
	if os.Getuid() != 0 {
		r.t.Skip("not root: nobody else can be asked")
	}
	in, err := json.Marshal(all)
	if err != nil {
		r.t.Fatal(err)
	}
	cmd := r.asNobody("stranger")
	cmd.Stdin = strings.NewReader(string(in))
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &all)
	}
	if err != nil {
		r.t.Fatalf("the stranger: %v: %s", err, out)
	}
	return all
}

// asNobody makes a run of the test binary, as what probe says, under another user.
func (r *rig) asNobody(probe string) *exec.Cmd {
	r.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		r.t.Fatal(err)
	}
	program := filepath.Join(r.dir, "probe") // the test binary lies where nobody else comes
	if _, err := os.Stat(program); err != nil {
		if out, err := exec.Command("cp", exe, program).CombinedOutput(); err != nil {
			r.t.Fatalf("cp: %v: %s", err, out)
		}
	}
	for _, path := range []string{r.dir, program} {
		if err := os.Chmod(path, 0o755); err != nil {
			r.t.Fatal(err)
		}
	}
	cmd := exec.Command(program)
	cmd.Dir = "/"
	cmd.Env = []string{probeEnv + "=" + probe}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	return cmd
}

// beImpostor answers everybody at a socket as a daemon would.
func beImpostor(path string) int {
	listener, err := net.Listen("unix", path)
	if err == nil {
		err = os.Chmod(path, 0o777)
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("up")
	http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "[]") }))
	return 1
}

func TestAnotherUserCanNeitherConnectNorReadNorWriteAnythingOfAFleet(t *testing.T) {
	full(t)
	t.Parallel()
	r := newRig(t, agents)
	r.must(nil, "up")
	out, code := r.dispatch(r.repo("api"), "--profile", "worker", "--task", "a secret", "--wait")
	if code != 0 {
		t.Fatalf("exit %d, %+v", code, out)
	}
	r.must(nil, "reserve", r.repo("web"), "--profile", "worker")
	everything := func() (all []attempt) {
		err := filepath.WalkDir(r.state, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				all = append(all, attempt{Path: path, Socket: d.Type() == fs.ModeSocket})
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	kinds := map[string]bool{}
	for _, a := range r.stranger(everything()) {
		kinds[filepath.Base(a.Path)] = true
		if len(a.Could) > 0 {
			t.Errorf("a stranger could %v: %s", a.Could, a.Path)
		}
	}
	for _, name := range []string{"reservations.json", "registry.json", "secret", "spec.json", "task.md", "charter.md", "fleetd.sock", "daemon.log", "events.jsonl", "log"} {
		if !kinds[name] {
			t.Errorf("there is no %s: what is it called now?", name)
		}
	}
	// Even where its owner has opened the directories to everybody, each file in them is its owner's.
	for _, a := range append(everything(), attempt{Path: filepath.Join(r.state, "members", out.Member, "x")}) {
		for dir := filepath.Dir(a.Path); len(dir) >= len(r.state); dir = filepath.Dir(dir) {
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, a := range r.stranger(everything()) {
		if len(a.Could) > 0 {
			t.Errorf("with open directories a stranger could %v: %s", a.Could, a.Path)
		}
	}
	// And where the sockets are open too, nobody else is answered.
	sockets := 0
	var open []attempt
	for _, a := range everything() {
		if a.Socket {
			sockets++
			open = append(open, a)
			if err := os.Chmod(a.Path, 0o777); err != nil {
				t.Fatal(err)
			}
		}
	}
	if sockets < 2 {
		t.Errorf("%d sockets, want the daemon's and a holder's", sockets)
	}
	for _, a := range r.stranger(open) {
		if len(a.Could) != 1 || a.Could[0] != "connect" {
			t.Errorf("at an open socket a stranger could %v: %s", a.Could, a.Path)
		}
	}
}

// A client does not believe what listens in its daemon's place.
func TestADaemonOfAnotherUsersIsNotBelieved(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("not root: nobody else can listen")
	}
	r := newRig(t, agents)
	r.must(nil, "up")
	r.must(nil, "down")
	dir := filepath.Join(r.dir, "theirs")
	err := os.Mkdir(dir, 0o755)
	if err == nil {
		err = os.Chown(dir, nobody, nobody)
	}
	if err != nil {
		t.Fatal(err)
	}
	impostor := r.asNobody("impostor:" + filepath.Join(dir, "s"))
	stdout, err := impostor.StdoutPipe()
	if err == nil {
		err = impostor.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer impostor.Wait()
	defer impostor.Process.Kill()
	if _, err := io.ReadFull(stdout, make([]byte, 2)); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(r.state, "fleetd.sock")
	if err := os.Rename(filepath.Join(dir, "s"), socket); err != nil {
		t.Fatal(err)
	}
	_, stderr, code := r.fleetdeck("members")
	if code != 6 || !strings.Contains(stderr, "not yours") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	os.Remove(socket)
}
