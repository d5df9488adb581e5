package cluster

import (
	"context"
	"errors"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"fleetdeck/fleet"
	"fleetdeck/fleet/cluster/etcdrun"
)

func TestAFullEtcdRefusesWhatIsWrittenAndGivesBackWhatIsHeld(t *testing.T) {
	t.Parallel()
	const quota = 16 << 20
	etcd := etcdrun.StartAt(t, etcdrun.Options{Quota: quota}, etcdrun.Place{})
	l := open(t, etcd.Endpoints())
	mine, booting := reserve(t, l, architect("/src/api")), reserve(t, l, draft("/src/boots"))
	bind(t, l, mine)
	c, err := l.client()
	if err != nil {
		t.Fatal(err)
	}
	for err, n := error(nil), 0; ; n++ {
		if _, err = c.Put(t.Context(), "/elsewhere", strings.Repeat("x", 1<<20)); err == nil && n < 100 {
			continue
		}
		if !errors.Is(err, rpctypes.ErrNoSpace) {
			t.Fatalf("after %d MB: %v, want it full", n, err)
		}
		break
	}

	full := func(what string, err error) {
		t.Helper()
		r := fleet.RefusalOf(err)
		if r == nil || r.Code != fleet.CodeClusterUnreachable || !strings.Contains(r.Error(), "full") || !strings.Contains(r.Hint, "defrag") {
			t.Errorf("%s: %v, want %s and what is to be done", what, err, fleet.CodeClusterUnreachable)
		}
	}
	_, err = l.Reserve(t.Context(), window, draft("/src/web"), nobody)
	full("reserve", err)
	full("bind", l.Bind(t.Context(), booting.ID, "Mboots"))
	full("publish", l.Publish(t.Context(), []fleet.Member{{ID: "M" + mine.ID}}))
	info := l.Info(t.Context())
	if e := info.Endpoints[0]; !e.Full || e.Trouble() == "" || info.Error != "" || info.HeardAt.IsZero() {
		t.Errorf("info %+v, want that it answers and is full", info)
	}
	if held, err := l.Held(t.Context()); err != nil || !held[mine.ID] || len(held) != 2 {
		t.Errorf("held: %v, %v, want both", held, err)
	}
	if err := l.Vacate(t.Context(), window, mine.ID); err != nil {
		t.Errorf("give back what a member held: %v", err)
	}
	if err := l.Settle(t.Context(), window, booting.ID); err != nil {
		t.Errorf("give back a reservation: %v", err)
	}
	if held, err := l.Held(t.Context()); err != nil || len(held) != 0 {
		t.Errorf("held: %v, %v, want nothing", held, err)
	}

	makeRoom(t, c, etcd.Endpoints()[0])
	reserve(t, l, architect("/src/api"))
	if e := l.Info(t.Context()).Endpoints[0]; e.Full || e.Trouble() != "" {
		t.Errorf("endpoint %+v, want it well again", e)
	}
}

// makeRoom does what docs/cluster.md says.
func makeRoom(t *testing.T, c *clientv3.Client, endpoint string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), window)
	defer cancel()
	status, err := c.Status(ctx, endpoint)
	if err == nil {
		_, err = c.Compact(ctx, status.Header.Revision, clientv3.WithCompactPhysical())
	}
	if err == nil {
		_, err = c.Defragment(ctx, endpoint)
	}
	if err == nil {
		_, err = c.AlarmDisarm(ctx, &clientv3.AlarmMember{})
	}
	if err != nil {
		t.Fatal(err)
	}
}
