package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestADaemonsLogIsPutAsideBeforeItFillsTheDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), logName)
	log, err := openLog(path)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	line := strings.Repeat("refused ", 1<<14)
	for i := range 200 {
		fmt.Fprintf(log, "%d %s\n", i, line)
		putAside(log, path)
	}
	newest, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	older, err := os.ReadFile(path + ".1")
	if err != nil {
		t.Fatal(err)
	}
	if limit := maxLog + len(line) + 10; len(newest) > limit || len(older) > limit {
		t.Errorf("%d and %d bytes are kept, of at most %d", len(newest), len(older), limit)
	}
	if both := string(older) + string(newest); !strings.Contains(both, "\n199 ") && !strings.HasPrefix(string(newest), "199 ") {
		t.Error("the newest line is lost")
	}
	// Another's file, as a service manager hands it over.
	other, err := os.Create(filepath.Join(t.TempDir(), "journal"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	other.Truncate(2 * maxLog)
	putAside(other, path)
	if info, err := other.Stat(); err != nil || info.Size() != 2*maxLog {
		t.Errorf("another's log was cut: %v, %v", info.Size(), err)
	}
}
