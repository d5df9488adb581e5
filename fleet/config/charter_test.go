package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"fleetdeck/fleet/config"
)

func TestTheWayOfACharterFitsItsCommand(t *testing.T) {
	for _, tt := range []struct{ name, profile, want, err string }{
		{"nothing said, in the command", `command = ["a", "x{charter}"]`, config.CharterArgument, ""},
		{"nothing said, not in the command", `command = ["a"]`, config.CharterFile, ""},
		{"file, and the command names it", `command = ["a", "{charter_file}"]`, config.CharterFile, ""},
		{"environment", `command = ["a"]` + "\ncharter = \"env\"", config.CharterEnv, ""},
		{"typed", `command = ["a"]` + "\ncharter = \"typed\"", config.CharterTyped, ""},
		{"argument, and no place for it", `command = ["a"]` + "\ncharter = \"argument\"", "", "no {charter}"},
		{"typed, and in the command too", `command = ["a", "{charter}"]` + "\ncharter = \"typed\"", "", "handed over once"},
		{"unknown", `command = ["a"]` + "\ncharter = \"sung\"", "", "use argument, file, env or typed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := config.Parse("/etc/fleetdeck.toml", []byte("[profiles.p]\n"+tt.profile+"\n"))
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("error %v, want one with %q", err, tt.err)
				}
				return
			}
			if err != nil || c.Profiles["p"].Charter != tt.want {
				t.Errorf("%+v, %v, want charter %s", c, err, tt.want)
			}
		})
	}
}

func TestTheToolsAreServedOnTheLoopbackOnly(t *testing.T) {
	for addr, ok := range map[string]bool{
		"127.0.0.1:7777": true, "[::1]:7777": true, "localhost:0": true,
		"0.0.0.0:7777": false, ":7777": false, "192.168.1.4:7777": false, "example.org:80": false, "7777": false, "127.0.0.1:": false,
	} {
		t.Run(addr, func(t *testing.T) {
			_, err := config.Parse("/etc/fleetdeck.toml", []byte("[mcp]\nlisten = \""+addr+"\"\n"))
			if (err == nil) != ok {
				t.Errorf("error %v, want one: %t", err, !ok)
			}
		})
	}
}

func TestACharterThatIsNoPlainFileIsNeitherWaitedForNorReadToItsEnd(t *testing.T) {
	dir := t.TempDir()
	pipe, long, fits := filepath.Join(dir, "pipe"), filepath.Join(dir, "long.md"), filepath.Join(dir, "fits.md")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, size := range map[string]int{long: config.MaxCharter + 1, fits: config.MaxCharter} {
		if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ path, want string }{
		{pipe, "no plain file"}, {os.DevNull, "no plain file"}, {dir, "no plain file"}, {long, "longer than"}, {fits, ""},
	} {
		read := make(chan error, 1)
		go func() {
			_, err := config.ReadCharter(tt.path)
			read <- err
		}()
		select {
		case err := <-read:
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%s: error %v, want one with %q", tt.path, err, tt.want)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("%s is waited for", tt.path)
		}
	}
}
