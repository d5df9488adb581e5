package book_test

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/book"
	"fleetdeck/fleet/launch/process"
	"fleetdeck/fleet/ledger"
	"fleetdeck/fleet/ledger/ledgertest"
)

var (
	bookProcesses = flag.Int("processes", 8, "how many processes reserve and release at once")
	bookRounds    = flag.Int("rounds", 10, "how often each of them does")
)

// writerEnv makes the test binary a process that reserves and releases its own tree, in the directory that it names.
const writerEnv = "FLEETDECK_TEST_WRITER"

func TestMain(m *testing.M) {
	ledgertest.Main(func(dir string) (ledger.Ledger, error) { return book.Open(dir, process.Now) })
	if dir := os.Getenv(writerEnv); dir != "" {
		if err := reserveAndRelease(dir, os.Args[1], os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func reserveAndRelease(dir, tree, times string) error {
	rounds, err := strconv.Atoi(times)
	if err != nil {
		return err
	}
	b, err := book.Open(dir, process.Now)
	if err != nil {
		return err
	}
	ctx := context.Background()
	const long = time.Minute
	for range rounds {
		e, err := b.Reserve(ctx, long, draft(tree), nobody)
		if err != nil {
			return err
		}
		if _, err := b.Prune(ctx, long, fleet.Roster{}); err != nil {
			return err
		}
		// Had another's write lost it, there would be nothing to release.
		if _, ok, err := b.Release(ctx, long, tree, e.ID); err != nil || !ok {
			return fmt.Errorf("release %s of %s: %t, %v", e.ID, tree, ok, err)
		}
	}
	return nil
}

func TestManyProcessesLoseNoReservationAndTearNoFile(t *testing.T) {
	b, c := newBook(t)
	c.at = process.Now()
	dir := filepath.Dir(b.Path())
	lasting := draft("/src/stays")
	lasting.Grace = time.Hour
	stays, err := b.Reserve(t.Context(), window, lasting, nobody)
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var writers sync.WaitGroup
	for i := range *bookProcesses {
		cmd := exec.Command(exe, fmt.Sprintf("/src/tree%d", i), strconv.Itoa(*bookRounds))
		cmd.Env = append(os.Environ(), writerEnv+"="+dir)
		writers.Go(func() {
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	done := make(chan struct{})
	go func() { writers.Wait(); close(done) }()
	reads := 0
	for reading := true; reading; reads++ {
		select {
		case <-done:
			reading = false
		default:
		}
		entries, err := b.Read()
		if err != nil {
			t.Errorf("read %d: %v", reads, err)
			<-done
			break
		}
		if len(entries) == 0 || entries[0].ID != stays.ID {
			t.Errorf("read %d: %+v, without the entry that stays", reads, entries)
			<-done
			break
		}
	}
	entries, err := b.Read()
	if err != nil || len(entries) != 1 {
		t.Errorf("in the end: %+v, %v, want one entry", entries, err)
	}
	names, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if name.Name() != book.FileName && name.Name() != book.FileName+".lock" || name.Type() != fs.FileMode(0) {
			t.Errorf("left behind: %s", name)
		}
	}
	t.Logf("%d processes, %d rounds each, %d reads meanwhile", *bookProcesses, *bookRounds, reads)
}
