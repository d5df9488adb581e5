package cluster

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"fleetdeck/fleet"
)

// Info asks each server of the cluster how it is, all at once, and waits for them as long as ctx lasts and no longer than the
// slowest needs.
func (l *Ledger) Info(ctx context.Context) fleet.ClusterInfo {
	info := fleet.ClusterInfo{Fleet: l.Fleet, Node: l.Node, Endpoints: make([]fleet.Endpoint, len(l.Endpoints))}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c, err := l.client()
	if err != nil {
		info.Error = l.unreachable(err).Error()
		for i, url := range l.Endpoints {
			info.Endpoints[i] = fleet.Endpoint{URL: url, Error: err.Error()}
		}
		return info
	}
	keeper := make(chan string, 1)
	go func() { // what it cannot be told is not known
		if c, err := l.Elected(ctx); err == nil && c != nil {
			keeper <- c.Node
			return
		}
		keeper <- ""
	}()
	names := make(chan map[uint64]string, 1)
	go func() { names <- memberNames(ctx, c) }()
	ids := make([]uint64, len(l.Endpoints))
	var asking sync.WaitGroup
	for i, url := range l.Endpoints {
		asking.Go(func() { info.Endpoints[i], ids[i] = l.serves(ctx, c, url) })
	}
	asking.Wait()
	by, failed := <-names, []string{}
	info.Keeper = <-keeper
	for i := range info.Endpoints {
		e := &info.Endpoints[i]
		if e.Error != "" {
			failed = append(failed, e.URL+": "+e.Error)
			continue
		}
		e.Name = by[ids[i]]
		info.HeardAt = time.Now()
	}
	if len(failed) == len(info.Endpoints) {
		info.Error = "etcd does not answer: " + strings.Join(failed, "; ")
	}
	return info
}

// serves asks a server how it is, and gives its id.
func (l *Ledger) serves(ctx context.Context, c *clientv3.Client, url string) (e fleet.Endpoint, id uint64) {
	e.URL = url
	conn, err := c.Dial(url)
	if err != nil {
		e.Error = l.told(url, err)
		return e, 0
	}
	defer conn.Close()
	server := clientv3.NewMaintenanceFromMaintenanceClient(clientv3.RetryMaintenanceClient(c, conn), c)
	res, err := server.Status(ctx, url)
	if err == nil { // the time of the first answer is that of connecting
		began := time.Now()
		res, err = server.Status(ctx, url)
		e.LatencyMS = float64(time.Since(began).Microseconds()) / 1e3
	}
	if err != nil {
		e.Error = l.told(url, err)
		return e, 0
	}
	id = res.Header.MemberId
	e.Version, e.Leader, e.Revision, e.Bytes = res.Version, res.Leader == id, res.Header.Revision, res.DbSizeInUse
	e.Full = slices.ContainsFunc(res.Errors, func(alarm string) bool { return strings.Contains(alarm, pb.AlarmType_NOSPACE.String()) })
	if res.Leader == 0 {
		e.Error = "it knows of no leader"
	}
	return e, id
}

// told says why a server that gave err is no use. That a time is over says least: then a connection of our own finds out.
func (l *Ledger) told(url string, err error) string {
	ctx, cancel := context.WithTimeout(context.Background(), glanceTime)
	defer cancel()
	switch why := reach(ctx, url, l.TLS); {
	case why != nil:
		return why.Error()
	case errors.Is(err, context.DeadlineExceeded), status.Code(err) == codes.DeadlineExceeded:
		return errMute.Error()
	}
	return err.Error()
}

// memberNames are the names that the servers have for each other, where one says so.
func memberNames(ctx context.Context, c *clientv3.Client) map[uint64]string {
	names := map[uint64]string{}
	if res, err := c.MemberList(ctx); err == nil {
		for _, m := range res.Members {
			names[m.ID] = m.Name
		}
	}
	return names
}
