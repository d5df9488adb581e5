package keeper

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"fleetdeck/fleet"
)

// TestMain lets the test binary be another process that adds tasks to a queue.
func TestMain(m *testing.M) {
	if dir := os.Getenv("KEEPER_TEST_QUEUE"); dir != "" {
		if err := addTasks(dir, os.Getenv("KEEPER_TEST_NAME")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const adds = 10

func addTasks(dir, name string) error {
	q, err := OpenQueue(dir)
	if err != nil {
		return err
	}
	for i := range adds {
		if _, _, err := q.Add(context.Background(), Task{Tree: "/src/api", Role: "dev", Profile: "shell", Task: fmt.Sprint(name, " ", i)}, now); err != nil {
			return err
		}
	}
	return nil
}

func TestQueueLosesNothingAndKeepsTheOrderOfEachWriter(t *testing.T) {
	dir := t.TempDir()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for w := range 4 {
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), "KEEPER_TEST_QUEUE="+dir, fmt.Sprint("KEEPER_TEST_NAME=", w))
		wg.Go(func() {
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("writer %d: %v: %s", w, err, out)
			}
		})
	}
	wg.Wait()
	q, err := OpenQueue(dir)
	if err != nil {
		t.Fatal(err)
	}
	tasks, err := q.List()
	if err != nil || len(tasks) != 4*adds {
		t.Fatalf("%d tasks, %v, want %d", len(tasks), err, 4*adds)
	}
	next := map[string]int{}
	for _, task := range tasks {
		writer, _, _ := strings.Cut(task.Task, " ")
		if want := fmt.Sprint(writer, " ", next[writer]); task.Task != want {
			t.Errorf("task %q stands where %q should", task.Task, want)
		}
		next[writer]++
	}
	data, err := os.ReadFile(q.file.Path())
	if lines := strings.Count(string(data), "\n"); err != nil || lines != 4*adds+3 {
		t.Errorf("the file has %d lines, %v, want one a task and three", lines, err)
	}
}

func TestTaskThatIsTakenOutStaysOut(t *testing.T) {
	q, err := OpenQueue(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	task, before, err := q.Add(t.Context(), Task{Tree: "/src/api"}, now)
	if err != nil || before != 0 {
		t.Fatalf("Add: %d before it, %v", before, err)
	}
	if _, before, err = q.Add(t.Context(), Task{Tree: "/src/api"}, now); err != nil || before != 1 {
		t.Fatalf("Add: %d before it, %v, want 1", before, err)
	}
	if got, err := q.Remove(t.Context(), task.ID); err != nil || got != task {
		t.Errorf("Remove = %+v, %v, want %+v", got, err, task)
	}
	if _, err := q.change(t.Context(), task.ID, func(*Task) bool { return true }); !errors.Is(err, ErrNoTask) {
		t.Errorf("a late change: %v, want %v", err, ErrNoTask)
	}
	if tasks, err := q.List(); err != nil || len(tasks) != 1 {
		t.Errorf("left: %+v, %v, want one", tasks, err)
	}
}

func TestDamagedQueueIsNeverTouched(t *testing.T) {
	for name, text := range map[string]string{
		"zero bytes": "", "a list": "[]\n", "a task that is no object": "{\n\"01\": 5\n}\n",
		"a newer format": "{\n\"$format\": \"fleetdeck.queue/2\"\n}\n",
	} {
		t.Run(name, func(t *testing.T) {
			q, err := OpenQueue(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(q.file.Path(), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, lerr := q.List()
			_, _, aerr := q.Add(t.Context(), Task{Tree: "/src/api"}, now)
			for call, err := range map[string]error{"List": lerr, "Add": aerr} {
				if r := fleet.RefusalOf(err); r == nil || r.Code != fleet.CodeFileCorrupt || !strings.Contains(err.Error(), q.file.Path()) {
					t.Errorf("%s: %v, want %s and the path", call, err, fleet.CodeFileCorrupt)
				}
			}
			if got, _ := os.ReadFile(q.file.Path()); string(got) != text {
				t.Errorf("the file changed to %q", got)
			}
		})
	}
}
