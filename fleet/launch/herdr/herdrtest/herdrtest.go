// Package herdrtest stands in for herdr's server in tests: a socket that speaks the frames of herdr's interface, and panes
// that are real pseudo-terminals with real processes. herdr itself comes from no package registry.
//
// It knows the methods that fleetdeck calls, and is strict: a parameter that the generation in question does not have, or
// one that is missing, is refused as herdr's own decoder would.
package herdrtest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// Server is a running stand-in.
type Server struct {
	Socket   string
	Protocol int

	listener net.Listener

	mu    sync.Mutex // guards the fields below
	panes map[string]*Pane
	next  int
	calls []string
	fail  map[string]string
	hang  bool
}

// Pane is a pane with its process.
type Pane struct {
	ID, Workspace, Name, Label, Cwd string
	Env                             map[string]string

	tty *os.File
	cmd *exec.Cmd
}

// Start runs a server of the given protocol until the test ends.
func Start(t *testing.T, protocol int) *Server {
	t.Helper()
	dir, err := os.MkdirTemp("", "fdh")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Socket: filepath.Join(dir, "herdr.sock"), Protocol: protocol, panes: map[string]*Pane{}, fail: map[string]string{}}
	if s.listener, err = net.Listen("unix", s.Socket); err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			conn, err := s.listener.Accept()
			if err != nil {
				return
			}
			go s.serve(conn)
		}
	}()
	t.Cleanup(func() {
		s.Kill()
		os.RemoveAll(dir)
	})
	return s
}

// Kill ends the server and hangs up every pane, as a crash of herdr does.
func (s *Server) Kill() {
	s.listener.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, p := range s.panes {
		p.tty.Close()
		delete(s.panes, id)
	}
}

// Fail makes method answer with an error of that code from now on; an empty code ends that.
func (s *Server) Fail(method, code string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail[method] = code
}

// Hang makes the server take requests and answer none.
func (s *Server) Hang() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hang = true
}

// Calls are the methods that were called, in order.
func (s *Server) Calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// Panes are the panes that are open.
func (s *Server) Panes() []Pane {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Pane
	for _, p := range s.panes {
		all = append(all, *p)
	}
	return all
}

// refusal is an error of the interface.
type refusal struct{ code, message string }

func (r *refusal) Error() string { return r.code + ": " + r.message }

// serve answers the one request of a connection.
func (s *Server) serve(conn net.Conn) {
	defer conn.Close()
	line, err := bufio.NewReader(io.LimitReader(conn, 1<<20)).ReadBytes('\n')
	if err != nil {
		return
	}
	var req struct {
		ID     *string          `json:"id"`
		Method string           `json:"method"`
		Params *json.RawMessage `json:"params"`
	}
	id := ""
	var result any
	if err = json.Unmarshal(line, &req); err != nil || req.ID == nil || req.Params == nil {
		err = &refusal{"invalid_request", "the request cannot be read"}
	} else {
		id = *req.ID
		s.mu.Lock()
		s.calls = append(s.calls, req.Method)
		code, hang := s.fail[req.Method], s.hang
		s.mu.Unlock()
		switch {
		case hang:
			io.Copy(io.Discard, conn) // until the caller gives up
			return
		case code != "":
			err = &refusal{code, "as the test wants it"}
		default:
			result, err = s.do(req.Method, *req.Params)
		}
	}
	answer := map[string]any{"id": id, "result": result}
	if err != nil {
		code := "invalid_request"
		if r, ok := err.(*refusal); ok {
			code = r.code
		}
		answer = map[string]any{"id": id, "error": map[string]string{"code": code, "message": err.Error()}}
	}
	json.NewEncoder(conn).Encode(answer)
}

func (s *Server) do(method string, params json.RawMessage) (any, error) {
	switch method {
	case "ping":
		return map[string]any{"type": "pong", "version": "test", "protocol": s.Protocol,
			"capabilities": map[string]bool{"live_handoff": false, "detached_server_daemon": true}}, nil
	case "agent.start":
		return s.agentStart(params)
	case "workspace.create":
		return s.workspaceCreate(params)
	case "pane.send_input":
		return s.sendInput(params)
	case "pane.close":
		return s.close(params, func(p *Pane, id string) bool { return p.ID == id })
	case "workspace.close":
		return s.close(params, func(p *Pane, id string) bool { return p.Workspace == id })
	}
	return nil, &refusal{"invalid_request", "unknown method " + method}
}

// read reads params strictly.
func read(params json.RawMessage, v any) error {
	dec := json.NewDecoder(bytes.NewReader(params))
	dec.DisallowUnknownFields()
	return dec.Decode(v)
}

func (s *Server) agentStart(params json.RawMessage) (any, error) {
	if s.Protocol >= 17 {
		return nil, &refusal{"unsupported_agent_kind", "this stand-in runs no kinds of agents"}
	}
	var p struct {
		Name, Cwd string
		Argv      []string
		Focus     bool
	}
	var q struct {
		Name  string            `json:"name"`
		Cwd   string            `json:"cwd"`
		Argv  []string          `json:"argv"`
		Focus bool              `json:"focus"`
		Env   map[string]string `json:"env"`
	}
	var err error
	if s.Protocol < 14 {
		err = read(params, &p)
		q.Name, q.Cwd, q.Argv = p.Name, p.Cwd, p.Argv
	} else {
		err = read(params, &q)
	}
	switch {
	case err != nil:
		return nil, err
	case q.Name == "":
		return nil, &refusal{"invalid_agent_name", "no name"}
	case len(q.Argv) == 0:
		return nil, &refusal{"invalid_agent_argv", "no argv"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, other := range s.panes {
		if other.Name == q.Name {
			return nil, &refusal{"agent_name_taken", q.Name}
		}
	}
	pane, err := s.open(q.Argv, q.Cwd, q.Env)
	if err != nil {
		return nil, &refusal{"agent_start_failed", err.Error()}
	}
	pane.Name = q.Name
	return map[string]any{"type": "agent_started", "argv": q.Argv, "agent": map[string]any{
		"terminal_id": "t" + pane.ID, "name": q.Name, "agent_status": "unknown", "workspace_id": pane.Workspace, "tab_id": pane.Workspace + ":t1",
		"pane_id": pane.ID, "focused": false, "cwd": q.Cwd, "revision": 0,
	}}, nil
}

func (s *Server) workspaceCreate(params json.RawMessage) (any, error) {
	var p struct {
		Cwd   string            `json:"cwd"`
		Label string            `json:"label"`
		Focus bool              `json:"focus"`
		Env   map[string]string `json:"env"`
	}
	if err := read(params, &p); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	pane, err := s.open([]string{"/bin/sh", "-i"}, p.Cwd, p.Env)
	if err != nil {
		return nil, &refusal{"workspace_create_failed", err.Error()}
	}
	pane.Label = p.Label
	return map[string]any{"type": "workspace_created",
		"workspace": map[string]any{"workspace_id": pane.Workspace, "label": p.Label, "number": s.next},
		"tab":       map[string]any{"tab_id": pane.Workspace + ":t1"},
		"root_pane": map[string]any{"pane_id": pane.ID, "terminal_id": "t" + pane.ID, "workspace_id": pane.Workspace, "tab_id": pane.Workspace + ":t1"},
	}, nil
}

// open runs argv in a new pane. s.mu is held.
func (s *Server) open(argv []string, cwd string, env map[string]string) (*Pane, error) {
	s.next++
	p := &Pane{Workspace: "w" + strconv.Itoa(s.next), Cwd: cwd, Env: env}
	p.ID = p.Workspace + ":p1"
	p.cmd = exec.Command(argv[0], argv[1:]...)
	p.cmd.Dir = cwd
	p.cmd.Env = append(os.Environ(), "HERDR_ENV=1", "HERDR_SOCKET_PATH="+s.Socket, "HERDR_WORKSPACE_ID="+p.Workspace, "HERDR_PANE_ID="+p.ID)
	for name, value := range env {
		p.cmd.Env = append(p.cmd.Env, name+"="+value)
	}
	tty, err := pty.StartWithSize(p.cmd, &pty.Winsize{Cols: 100, Rows: 30})
	if err != nil {
		return nil, err
	}
	// Not blocking, so that closing it does not wait for who reads it.
	fd, err := unix.FcntlInt(tty.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	tty.Close()
	if err != nil {
		return nil, err
	}
	tty = os.NewFile(uintptr(fd), "pane")
	p.tty = tty
	s.panes[p.ID] = p
	go io.Copy(io.Discard, tty)
	go func() { // a pane closes with its process
		p.cmd.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.panes[p.ID] == p {
			delete(s.panes, p.ID)
			tty.Close()
		}
	}()
	return p, nil
}

var keyBytes = map[string]string{"enter": "\r", "esc": "\x1b", "ctrl+c": "\x03"}

func (s *Server) sendInput(params json.RawMessage) (any, error) {
	var p struct {
		PaneID string   `json:"pane_id"`
		Text   string   `json:"text"`
		Keys   []string `json:"keys"`
	}
	if err := read(params, &p); err != nil {
		return nil, err
	}
	typed := p.Text
	for _, key := range p.Keys {
		b, ok := keyBytes[key]
		if !ok {
			return nil, &refusal{"invalid_key", key}
		}
		typed += b
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	pane := s.panes[p.PaneID]
	if pane == nil {
		return nil, &refusal{"pane_not_found", p.PaneID}
	}
	if _, err := pane.tty.WriteString(typed); err != nil {
		return nil, &refusal{"pane_input_failed", err.Error()}
	}
	return map[string]any{"type": "ok"}, nil
}

var closeParams = regexp.MustCompile(`^\{"(?:pane_id|workspace_id)":"([^"]+)"\}$`)

func (s *Server) close(params json.RawMessage, is func(*Pane, string) bool) (any, error) {
	m := closeParams.FindSubmatch(params)
	if m == nil {
		return nil, fmt.Errorf("close: %s cannot be read", params)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, p := range s.panes {
		if is(p, string(m[1])) {
			p.tty.Close()
			delete(s.panes, id)
			return map[string]any{"type": "ok"}, nil
		}
	}
	return nil, &refusal{"pane_not_found", string(m[1])}
}
