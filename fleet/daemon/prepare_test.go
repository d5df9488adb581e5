package daemon

import (
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fleetdeck/fleet/agent"
)

func TestATaskArrivesAsItWasWritten(t *testing.T) {
	const task = "-n \"many\" 'lines'\n{charter}\n--stop $HOME"
	for _, name := range []string{"claude", "codex", "opencode", "gemini"} {
		a, _ := agent.Lookup(name)
		want := []string{task, "--prompt=" + task, "--prompt-interactive=MARK\n\n" + task}
		for _, given := range []string{task, ""} {
			argv, err := arguments(agent.Expand(a.Command, nil, nil), map[string]string{"{task}": given, "{charter}": "MARK", "{session}": "S"})
			if err != nil {
				t.Fatal(err)
			}
			last := argv[len(argv)-1]
			if given == "" {
				if last == "" || last == "--prompt=" {
					t.Errorf("%s: %q hands over an empty task", name, argv)
				}
				continue
			}
			if !slices.Contains(want, last) {
				t.Errorf("%s: the last argument is %q", name, last)
			}
			// Nothing of it can be taken for an option: it follows "--", or its option's name.
			if last == task && argv[len(argv)-2] != "--" {
				t.Errorf("%s: %q lets the task be read as an option", name, argv)
			}
		}
	}
}

func TestOnlyAnOptionIsLeftOutWithItsTask(t *testing.T) {
	argv, err := arguments([]string{"x", "--prompt={task}", "{task}", "say {task}", "--a=b={task}", "-p={task}"}, map[string]string{"{task}": ""})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"x", "say ", "--a=b=", "-p="}, argv); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
}

func TestASessionIsAUUIDThatARepeatedStartNamesAgain(t *testing.T) {
	uuid := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	a, b := sessionOf("01A"), sessionOf("01B")
	if !uuid.MatchString(a) || a == b || a != sessionOf("01A") {
		t.Errorf("sessions %s and %s", a, b)
	}
}
