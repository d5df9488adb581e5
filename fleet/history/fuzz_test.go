package history

import (
	"os"
	"testing"
	"time"

	"fleetdeck/fleet"
)

func FuzzWhateverIsInTheFileTheNextDeedIsReadBack(f *testing.F) {
	for _, s := range []string{"", "{", "\n\n", "{\"what\":\"x\"}", "{\"time\":\"2026-11-30T06:10:00Z\",\"what\":\"stop\"}\n{\"wh", "\x00\x00\n", "null\n[]\n", "\xff"} {
		f.Add([]byte(s), "fleetdeck stop x")
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, before []byte, command string) {
		log := In(dir)
		if err := os.WriteFile(log.Path(), before, 0o600); err != nil {
			t.Fatal(err)
		}
		deed := fleet.Deed{Time: time.Date(2026, 11, 30, 6, 10, 0, 0, time.UTC), What: "stop", Command: command, Outcome: "done"}
		if err := log.Add(deed); err != nil {
			t.Fatal(err)
		}
		if _, err := log.Tail(100); err != nil {
			t.Fatal(err)
		}
		got, err := log.Tail(1)
		if err != nil || len(got) != 1 || got[0].What != "stop" || !got[0].Time.Equal(deed.Time) || got[0].Outcome != "done" {
			t.Errorf("after %q the last deed is %+v, %v", before, got, err)
		}
	})
}
