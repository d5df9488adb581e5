package cluster

import (
	"context"
	"fmt"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"fleetdeck/fleet"
)

// TestNothingIsReservedUnderAFenceThatDoesNotStand lets each of two fences fall, before the look at the tree and between that and the
// transaction. One that was made anew is another.
func TestNothingIsReservedUnderAFenceThatDoesNotStand(t *testing.T) {
	etcd := oneNode(t)
	falls := func(key string) []clientv3.Op { return []clientv3.Op{clientv3.OpDelete(key)} }
	changes := func(key string) []clientv3.Op { return []clientv3.Op{clientv3.OpPut(key, "more")} }
	for _, tt := range []struct {
		name string
		meet func(key string) []clientv3.Op
		anew bool // and is made again
		want fleet.Code
	}{
		{"it falls", falls, false, fleet.CodeReservationStale},
		{"it falls and is made anew", falls, true, fleet.CodeReservationStale},
		{"it changes and stands", changes, false, ""},
	} {
		for which := range 2 {
			for when, late := range map[string]bool{"before the look": false, "after the look": true} {
				t.Run(fmt.Sprintf("%s %s, fence %d", tt.name, when, which), func(t *testing.T) {
					t.Parallel()
					l := open(t, etcd.Endpoints())
					var fences []Fence
					for _, key := range []string{l.keys.root() + "one", l.keys.root() + "two"} {
						l.write(t, clientv3.OpPut(key, ""))
						res, err := l.get(t, key)
						if err != nil {
							t.Fatal(err)
						}
						fences = append(fences, Fence{Key: key, Rev: res.Kvs[0].CreateRevision, Of: "term " + key})
					}
					meet := func() {
						key := fences[which].Key
						l.write(t, tt.meet(key)...)
						if tt.anew {
							l.write(t, clientv3.OpPut(key, ""))
						}
					}
					if !late {
						meet()
					}
					_, err := l.Under(fences...).Reserve(t.Context(), window, draft("/src/api"), func(context.Context) (fleet.Roster, error) {
						if late {
							meet()
						}
						return fleet.Roster{}, nil
					})
					if codeOf(err) != tt.want || (err == nil) != (tt.want == "") {
						t.Errorf("reserve: %v, want %q", err, tt.want)
					}
					want := 0
					if tt.want == "" {
						want = 1
					}
					if n := l.count(t, l.keys.holds()); n != want {
						t.Errorf("%d holds stand, want %d", n, want)
					}
				})
			}
		}
	}
}
