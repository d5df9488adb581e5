package cluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"fleetdeck/fleet"
)

func TestTheSlotTableChangesOnlyByItsOwnCommandAndKeepsWhatIsHeld(t *testing.T) {
	t.Parallel()
	kite := open(t, oneNode(t).Endpoints())
	fewer := kite.again(t, func(o *Options) { o.Slots = twoArchitects[1:] })
	other := kite.again(t, func(o *Options) {
		o.Slots = append(slices.Clone(twoArchitects), fleet.Slot{Name: "lead/1", Role: "lead on all", Profile: "shell"})
	})
	shown := Checked{}
	show := func(c Checked) { shown = c }

	c, err := kite.Init(t.Context(), window, false, show)
	if err != nil || c.Table != TableSame || c.LeaseLasted < c.LeaseAsked || c.LeaseAsked == 0 {
		t.Errorf("init of what is there: %+v, %v, want the same table, and a lease that lasted as long as asked", c, err)
	}
	if _, err := other.Init(t.Context(), window, false, show); codeOf(err) != fleet.CodeSlotsDiffer || len(shown.Added) != 1 || len(shown.Removed) != 0 {
		t.Errorf("init of another table: %v, shown %+v, want %s and what is added", err, shown, fleet.CodeSlotsDiffer)
	}
	if c, err := other.Init(t.Context(), window, true, show); err != nil || c.Table != TableReplaced {
		t.Errorf("replace: %+v, %v", c, err)
	}
	d := architect("/src/api")
	d.Role = "lead on all"
	reserve(t, other, d)
	if _, err := kite.Reserve(t.Context(), window, draft("/src/web"), nobody); codeOf(err) != fleet.CodeSlotsDiffer || !strings.Contains(fleet.RefusalOf(err).Hint, "cluster init --slots") {
		t.Errorf("reserve by the old table: %v, want %s, with what to do", err, fleet.CodeSlotsDiffer)
	}
	if _, err := kite.Init(t.Context(), window, true, show); codeOf(err) != fleet.CodeSlotUnavailable {
		t.Errorf("replace by a table without a slot that is held: %v, want %s", err, fleet.CodeSlotUnavailable)
	}
	vacateAll(t, other)
	e := reserve(t, other, architect("/src/api"))
	if e.Slot != "architect-1" {
		t.Fatalf("slot %s, want the first", e.Slot)
	}
	if _, err := fewer.Init(t.Context(), window, true, show); codeOf(err) != fleet.CodeSlotUnavailable {
		t.Errorf("replace by a table without the first: %v, want %s", err, fleet.CodeSlotUnavailable)
	}
	vacateAll(t, other)
	if _, err := fewer.Init(t.Context(), window, true, show); err != nil {
		t.Errorf("replace, with nothing held: %v", err)
	}
	reserve(t, fewer, architect("/src/api"))
}

func vacateAll(t *testing.T, l *Ledger) {
	t.Helper()
	held, err := l.Held(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for id := range held {
		vacate(t, l, id)
	}
}

func TestInitSaysWhatIsToBeMended(t *testing.T) {
	t.Parallel()
	etcd := oneNode(t)
	plain := New(options(etcd.Endpoints(), "mend"))
	t.Cleanup(func() { plain.Close() })
	root, err := plain.client()
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	try := func(name, hint string, change func(*Options)) {
		t.Run(name, func(t *testing.T) {
			l := plain.again(t, change)
			_, err := l.Init(t.Context(), 1500*time.Millisecond, false, func(Checked) {})
			r := fleet.RefusalOf(err)
			if r == nil || !strings.Contains(r.Hint, hint) {
				t.Errorf("init: %v, %+v, want the hint %q", err, r, hint)
			}
		})
	}
	conf, err := TLS("", "", "")
	if err != nil {
		t.Fatal(err)
	}
	try("https to a server that speaks http", "https://", func(o *Options) {
		o.Endpoints, o.TLS = []string{strings.Replace(etcd.Endpoints()[0], "http://", "https://", 1)}, conf
	})
	must(root.UserAdd(ctx, "root", "r"))
	must(root.UserGrantRole(ctx, "root", "root"))
	must(root.UserAdd(ctx, "kite", "k"))
	must(root.RoleAdd(ctx, "other"))
	must(root.RoleGrantPermission(ctx, "other", "/elsewhere/", "/elsewhere0", clientv3.PermissionType(clientv3.PermReadWrite)))
	must(root.UserGrantRole(ctx, "kite", "other"))
	must(root.AuthEnable(ctx))
	try("no user", "username and password_file", func(o *Options) {})
	try("a wrong password", "username and password_file", func(o *Options) { o.Username, o.Password = "kite", "wrong" })
	try("a role for another prefix", "grant-permission ROLE readwrite /fleetdeck/v1/mend/", func(o *Options) { o.Username, o.Password = "kite", "k" })
}
