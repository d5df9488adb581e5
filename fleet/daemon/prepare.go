package daemon

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"fleetdeck/fleet"
	"fleetdeck/fleet/agent"
	"fleetdeck/fleet/config"
	"fleetdeck/fleet/launch"
)

const (
	termCols, termRows = 120, 40
	// maxArgument is what Linux takes as one argument, less room for what stands around it.
	maxArgument = 120 << 10
	logLimit    = 8 << 20
)

// prepare makes the member's directory and everything that its start needs. It may be done again: the same files and
// the same token come of it.
func (d *Daemon) prepare(rec record) (launch.Spec, error) {
	profile, ok := d.Config.Profiles[rec.Profile]
	if !ok {
		return launch.Spec{}, fmt.Errorf("profile %q is configured no more", rec.Profile)
	}
	dir := d.dirOf(rec.ID)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return launch.Spec{}, err
	}
	if err := d.writeAdmitted(rec); err != nil {
		return launch.Spec{}, err
	}
	charter, err := d.charter(rec.Role)
	if err != nil {
		return launch.Spec{}, err
	}
	charterFile, taskFile := filepath.Join(dir, "charter.md"), filepath.Join(dir, "task.md")
	if err := os.WriteFile(charterFile, charter, 0o600); err != nil {
		return launch.Spec{}, err
	}
	if err := os.WriteFile(taskFile, []byte(rec.toTell()), 0o600); err != nil {
		return launch.Spec{}, err
	}
	token, err := d.token(rec.ID)
	if err != nil {
		return launch.Spec{}, err
	}
	own := map[string]string{
		"FLEETDECK_MEMBER":       rec.ID,
		"FLEETDECK_ROLE":         rec.Role,
		"FLEETDECK_SLOT":         rec.Slot,
		"FLEETDECK_TREE":         rec.Tree,
		"FLEETDECK_CHARTER_FILE": charterFile,
		"FLEETDECK_TASK_FILE":    taskFile,
		"FLEETDECK_SOCKET":       d.State.Socket,
		"FLEETDECK_TOKEN":        token,
		"FLEETDECK_EXE":          d.Exe,
		"PWD":                    rec.Tree,
	}
	if len(rec.Also) > 0 {
		paths := make([]string, len(rec.Also))
		for i, t := range rec.Also {
			paths[i] = t.Path
		}
		own["FLEETDECK_ALSO"] = strings.Join(paths, "\n")
	}
	if !d.State.Usual {
		own["FLEETDECK_STATE"] = d.State.Path
	}
	if d.Config.Path != "" {
		own["FLEETDECK_CONFIG"] = d.Config.Path
	}
	// The text itself is put in by the child, which takes the receipt of it.
	mark := newCharterMark()
	if profile.Charter == config.CharterEnv {
		own["FLEETDECK_CHARTER"] = mark
	}
	in, err := d.inject(profile, dir, charterFile)
	if err != nil {
		return launch.Spec{}, err
	}
	env := d.environment(profile, in.Env, own)
	argv, err := arguments(agent.Expand(rec.command(profile), in.Args, profile.Args), map[string]string{
		"{task}": rec.toTell(), "{task_file}": taskFile, "{charter}": mark, "{charter_file}": charterFile, "{session}": rec.session(),
	})
	if err != nil {
		return launch.Spec{}, err
	}
	if argv[0], err = lookPath(argv[0], env); err != nil {
		return launch.Spec{}, err
	}
	spec := launch.Spec{
		ID: rec.ID, Dir: dir, Argv: argv, Env: env, Tree: fleet.Tree{Path: rec.Tree, File: rec.File},
		CharterFile: charterFile, CharterMark: mark,
		Cols: termCols, Rows: termRows, Deadline: rec.bootDeadline(), LogLimit: logLimit,
	}
	if profile.Charter == config.CharterTyped || rec.keepsCharter(profile) {
		spec.CharterFile, spec.CharterMark = "", "" // the receipt is taken where it is typed, or was taken long ago
	}
	return spec, nil
}

// inject makes the profile's agent report by itself: what that needs is in the member's own directory.
func (d *Daemon) inject(p config.Profile, dir, charter string) (agent.Injection, error) {
	a, ok := agent.Lookup(p.Agent)
	if !ok {
		return agent.Injection{}, nil
	}
	in := a.Inject(agent.Launch{Exe: d.Exe, Dir: dir, Charter: charter, Report: p.Hooks != config.HooksNone, All: p.Hooks == config.HooksAll})
	for name, text := range in.Files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return agent.Injection{}, err
		}
	}
	return in, nil
}

// sessionOf is the name of the session of the member id, as a UUID: a start that is repeated names the same one.
func sessionOf(id string) string {
	b := sha256.Sum256([]byte("fleetdeck session " + id))
	b[6], b[8] = b[6]&0x0f|0x80, b[8]&0x3f|0x80 // a UUID of one's own making: version 8
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

// arguments fills in the placeholders of command. An argument that is only {task}, or an option's name and it, is left out
// where there is no task.
func arguments(command []string, values map[string]string) ([]string, error) {
	var pairs []string
	for name, value := range values {
		pairs = append(pairs, name, value)
	}
	fill := strings.NewReplacer(pairs...)
	argv := make([]string, 0, len(command))
	for i, arg := range command {
		if name, ok := strings.CutSuffix(arg, "{task}"); ok && values["{task}"] == "" && (name == "" || optionName(name)) {
			continue
		}
		filled := fill.Replace(arg)
		if len(filled) > maxArgument {
			return nil, fmt.Errorf("argument %d is %d bytes long, more than a program can be given: use {task_file} or {charter_file} in the profile's command", i, len(filled))
		}
		if strings.ContainsRune(filled, 0) {
			return nil, fmt.Errorf("argument %d holds a NUL byte", i)
		}
		argv = append(argv, filled)
	}
	return argv, nil
}

// optionName reports whether s is "--name=", to which a value is to come.
func optionName(s string) bool {
	return strings.HasPrefix(s, "--") && strings.IndexAny(s, "= {}") == len(s)-1 && strings.HasSuffix(s, "=")
}

// passed are the variables of the daemon's environment that every agent gets.
var passed = []string{
	"HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "SSH_AUTH_SOCK", "TMPDIR", "TZ", "USER",
	"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME",
}

// environment makes an agent's environment: what everybody gets, what its adapter adds, what the profile asks for, and its own.
func (d *Daemon) environment(p config.Profile, added []string, own map[string]string) []string {
	set := map[string]string{"TERM": "xterm-256color", "COLORTERM": "truecolor"}
	for _, kv := range added {
		name, value, _ := strings.Cut(kv, "=")
		set[name] = value
	}
	for _, kv := range os.Environ() {
		name, value, _ := strings.Cut(kv, "=")
		if slices.Contains(passed, name) || strings.HasPrefix(name, "LC_") || slices.Contains(p.Env, name) {
			set[name] = value
		}
	}
	for _, kv := range p.Env {
		if name, value, ok := strings.Cut(kv, "="); ok {
			set[name] = value
		}
	}
	for name, value := range own {
		set[name] = value
	}
	if set["PATH"] == "" {
		set["PATH"] = "/usr/local/bin:/usr/bin:/bin"
	}
	env := make([]string, 0, len(set))
	for name, value := range set {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return env
}

// lookPath finds the program by the agent's own PATH.
func lookPath(program string, env []string) (string, error) {
	if strings.Contains(program, "/") {
		return exec.LookPath(program)
	}
	path := ""
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	var denied error
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue // a relative entry would mean another program in each tree
		}
		found, err := exec.LookPath(filepath.Join(dir, program))
		if err == nil {
			return found, nil
		}
		if errors.Is(err, fs.ErrPermission) {
			denied = err
		}
	}
	if denied != nil {
		return "", denied
	}
	return "", &exec.Error{Name: program, Err: exec.ErrNotFound}
}

// token is the member's identity. It is made from a secret of the state directory, so that a start that is repeated
// after a crash hands out the same one.
func (d *Daemon) token(id string) (string, error) {
	d.secretOnce.Do(func() { d.secret, d.secretErr = loadSecret(filepath.Join(d.State.Path, "secret")) })
	if d.secretErr != nil {
		return "", fmt.Errorf("secret of the tokens: %w", d.secretErr)
	}
	mac := hmac.New(sha256.New, d.secret)
	mac.Write([]byte(id))
	return id + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)), nil
}

func hashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// loadSecret reads the secret, and makes it where there is none. Only the daemon that holds the registry calls it.
func loadSecret(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err == nil && len(data) >= 32 {
		return data, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	data = make([]byte, 32)
	rand.Read(data)
	tmp := path + ".new"
	if err := os.WriteFile(tmp, data, 0o600); err != nil {
		return nil, err
	}
	return data, os.Rename(tmp, path)
}
