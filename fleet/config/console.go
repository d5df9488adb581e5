package config

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// Console is how the console looks and what its keys do.
type Console struct {
	// Theme is one of Themes.
	Theme string
	Mouse bool
	// StrictKeys moves every act that changes the fleet to a shifted letter.
	StrictKeys bool
	// Notify is one of Notices: how a person is told of a member that begins to wait.
	Notify string
	// Editor and Shell are argvs, never empty; what is to be edited is appended to Editor.
	Editor, Shell []string
	// Keys are the keys of an action by its name; none means that the action has no key. Columns are the columns of a view. Their names
	// are the console's to check.
	Keys, Columns map[string][]string
	// Sort is the column by which a view is sorted, after a "-" where the greatest comes first.
	Sort map[string]string
	// Pos is the line of each key of the table, such as "keys.spawn", for errors that are found later.
	Pos map[string]int
}

// Themes are the colours that the console can be drawn in, Notices the ways to tell of a member that waits; the first of each
// is what serves where nothing is said.
var (
	Themes  = []string{"auto", "dark", "light", "plain", "colour-blind"}
	Notices = []string{"bell", "none", "osc9", "osc777"}
)

type fileConsole struct {
	Theme      *string             `toml:"theme"`
	Mouse      bool                `toml:"mouse"`
	StrictKeys bool                `toml:"strict_keys"`
	Notify     *string             `toml:"notify"`
	Editor     []string            `toml:"editor"`
	Shell      []string            `toml:"shell"`
	Keys       map[string]any      `toml:"keys"`
	Columns    map[string][]string `toml:"columns"`
	Sort       map[string]string   `toml:"sort"`
}

// defaultConsole is the console that a file says nothing of.
func defaultConsole() Console {
	return Console{Theme: Themes[0], Notify: Notices[0], Editor: usualEditor(), Shell: usualShell()}
}

// usualEditor is what the environment names. It is a command line, as git and others take it, so a shell reads it.
func usualEditor() []string {
	for _, name := range []string{"VISUAL", "EDITOR"} {
		if line := strings.TrimSpace(os.Getenv(name)); line != "" {
			return []string{"sh", "-c", line + ` "$@"`, name}
		}
	}
	return []string{"vi"}
}

func usualShell() []string {
	if shell := os.Getenv("SHELL"); shell != "" {
		return []string{shell}
	}
	return []string{"sh"}
}

func (b *builder) console(f fileConsole) Console {
	c := defaultConsole()
	c.Mouse, c.StrictKeys, c.Sort = f.Mouse, f.StrictKeys, f.Sort
	c.Pos = positions(b.data, "console")
	fail := func(key, format string, args ...any) {
		b.errs = append(b.errs, &Error{b.path, c.Pos[key], "console." + key + ": " + fmt.Sprintf(format, args...)})
	}
	choose := func(key string, asked *string, from []string, or string) string {
		if asked == nil {
			return or
		}
		if !slices.Contains(from, *asked) {
			fail(key, "%q is unknown: use %s", *asked, strings.Join(from, ", "))
		}
		return *asked
	}
	c.Theme = choose("theme", f.Theme, Themes, c.Theme)
	c.Notify = choose("notify", f.Notify, Notices, c.Notify)
	argv := func(key string, asked, or []string) []string {
		switch {
		case asked == nil:
			return or
		case len(asked) == 0 || asked[0] == "":
			fail(key, "names no program")
		}
		return asked
	}
	c.Editor = argv("editor", f.Editor, c.Editor)
	c.Shell = argv("shell", f.Shell, c.Shell)

	c.Keys = make(map[string][]string, len(f.Keys))
	for _, action := range slices.Sorted(maps.Keys(f.Keys)) {
		keys, ok := stringsOf(f.Keys[action])
		switch {
		case !ok:
			fail("keys."+action, "is a key or a list of keys, such as \"s\" or [\"s\", \"ctrl+n\"]")
		case slices.Contains(keys, ""):
			fail("keys."+action, "holds an empty key: [] takes an action's keys away")
		default:
			c.Keys[action] = keys
		}
	}
	c.Columns = f.Columns
	for _, view := range slices.Sorted(maps.Keys(f.Columns)) {
		seen := map[string]bool{}
		for _, column := range f.Columns[view] {
			if column == "" || seen[column] {
				fail("columns."+view, "%q is empty or stands twice", column)
			}
			seen[column] = true
		}
		if len(seen) == 0 {
			fail("columns."+view, "a view needs a column")
		}
	}
	for _, view := range slices.Sorted(maps.Keys(f.Sort)) {
		if strings.TrimPrefix(f.Sort[view], "-") == "" {
			fail("sort."+view, "names no column")
		}
	}
	return c
}

// stringsOf is v as a list of strings, where it is a string or a list of them.
func stringsOf(v any) ([]string, bool) {
	if s, ok := v.(string); ok {
		return []string{s}, true
	}
	list, ok := v.([]any)
	out := make([]string, len(list))
	for i, e := range list {
		s, isString := e.(string)
		out[i], ok = s, ok && isString
	}
	return out, ok
}
