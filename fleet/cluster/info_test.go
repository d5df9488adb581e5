package cluster

import (
	"testing"

	"fleetdeck/fleet/cluster/etcdrun"
)

func TestInfoTellsTheLeaderAndWhichServersAreAway(t *testing.T) {
	t.Parallel()
	etcd := etcdrun.Start(t, 3)
	l := open(t, etcd.Endpoints())
	reserve(t, l, draft("/src/api"))
	leaders := func() (url []string) {
		for _, e := range l.Info(t.Context()).Endpoints {
			if e.Leader && e.Error == "" {
				url = append(url, e.URL)
			}
		}
		return url
	}
	first := leaders()
	if len(first) != 1 {
		t.Fatalf("leaders %v, want one", first)
	}
	for _, e := range l.Info(t.Context()).Endpoints {
		if e.Name == "" || e.Version == "" || e.Revision == 0 || e.Bytes == 0 || e.LatencyMS == 0 {
			t.Errorf("%+v lacks something", e)
		}
	}
	for i, url := range etcd.Endpoints() {
		if url == first[0] {
			etcd.Kill(i)
		}
	}
	await(t, "another leads", func() bool { now := leaders(); return len(now) == 1 && now[0] != first[0] })
	info := l.Info(t.Context())
	if info.Error != "" || info.HeardAt.IsZero() {
		t.Errorf("with one of three away: %+v, want that the cluster answers", info)
	}
	for _, e := range info.Endpoints {
		if gone := e.URL == first[0]; gone != (e.Error != "") {
			t.Errorf("%s: error %q", e.URL, e.Error)
		}
	}
	etcd.Kill(0)
	etcd.Kill(1)
	etcd.Kill(2)
	if info := l.Info(t.Context()); info.Error == "" || !info.HeardAt.IsZero() {
		t.Errorf("with all away: %+v, want an error", info)
	}
}
