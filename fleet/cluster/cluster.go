// Package cluster is the ledger of a fleet of many hosts: reservations, slots and members' trees as keys of etcd.
//
// It guarantees that a tree and a slot are held under one reservation at most, whichever host asks: both are taken in one
// transaction that finds them free, or neither is. A reservation hangs on a lease as long as its grace; what is bound to a member
// hangs on none, so that neither a lost host nor a lost connection gives a member's tree away, unless its agent is sure to have ended
// by itself when the lease does ([Ledger.Renew]). Consensus, leases and watches
// are etcd's. An outcome that the connection hid is found out by asking, and a request that was given up can not take effect
// later, since the lease that it needs is revoked first.
//
// A [Ledger] is a [ledger.Ledger]. Its windows bound how long etcd may take to answer: when one is over the call is refused with
// [fleet.CodeClusterUnreachable], and nothing was changed, or with [fleet.CodeOutcomeUnknown].
package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/grpclog"

	"fleetdeck/fleet"
	"fleetdeck/fleet/ledger"
)

const (
	// dialKeepAlive and dialGiveUp find a connection dead that says nothing: until then every call waits for it.
	dialKeepAlive = 2 * time.Second
	dialGiveUp    = time.Second
	// patience bounds a question that comes without a window.
	patience = 2 * time.Second
	// again is the pause between two questions to a cluster that gave no answer.
	again = 50 * time.Millisecond
)

// Options say which cluster, and who this host is in it.
type Options struct {
	Endpoints []string
	// Fleet names the fleet among those of the cluster, Node this host among those of the fleet.
	Fleet, Node string
	TLS         *tls.Config // nil means plain text
	// Username and Password are for a cluster that asks for them beside, or instead of, a certificate.
	Username, Password string
	// Slots is the slot table of this host's configuration; only name, role and profile count.
	Slots []fleet.Slot
	// Spaces are the file systems that this host shares with others.
	Spaces []Space
	Now    func() fleet.Instant
}

// Ledger is one host's view of the fleet's reservations. It is safe for use by several goroutines.
type Ledger struct {
	Options
	keys keys

	// admitting is held through an Admit, so that what its callback sees stays true until it returns.
	admitting sync.Mutex

	mu   sync.Mutex // guards etcd
	etcd *clientv3.Client
}

var _ ledger.Ledger = (*Ledger)(nil)

// quiet keeps what grpc has to say of itself off the standard error stream, where a console may be drawn.
var quiet = sync.OnceFunc(func() {
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard))
})

// New makes the ledger. It asks nobody: a cluster that is away is met by the first call.
func New(o Options) *Ledger {
	quiet()
	return &Ledger{Options: o, keys: keys{fleet: o.Fleet, node: o.Node}}
}

// Close ends the connection. Leases go on.
func (l *Ledger) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.etcd == nil {
		return nil
	}
	err := l.etcd.Close()
	l.etcd = nil
	return err
}

// Path is the end points and the prefix of the fleet.
func (l *Ledger) Path() string { return strings.Join(l.Endpoints, ",") + l.keys.root() }

// client connects at first use, since with a password that needs an answer.
func (l *Ledger) client() (*clientv3.Client, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.etcd != nil {
		return l.etcd, nil
	}
	c, err := clientv3.New(clientv3.Config{
		Endpoints: l.Endpoints, TLS: l.TLS, Username: l.Username, Password: l.Password, Logger: zap.NewNop(),
		DialTimeout: patience, DialKeepAliveTime: dialKeepAlive, DialKeepAliveTimeout: dialGiveUp,
		MaxUnaryRetries: 1, // who asks knows how long to go on
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			// A cluster that comes back is found again within seconds, however long it was away.
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 3 * time.Second},
			MinConnectTimeout: patience,
		})},
	})
	if err != nil {
		return nil, err
	}
	l.etcd = c
	return c, nil
}

// errLost means that a request may or may not have been carried out.
var errLost = errors.New("etcd's answer was lost")

// read asks until it is answered or ctx ends. It is for what changes nothing.
func read[T any](ctx context.Context, l *Ledger, ask func(context.Context, *clientv3.Client) (T, error)) (T, error) {
	for {
		out, err := once(ctx, l, ask)
		if err == nil || !errors.Is(err, errLost) {
			return out, err
		}
		if !pause(ctx) {
			return out, l.gaveUp(ctx, err)
		}
	}
}

// once asks once. An error that is no errLost is etcd's own: the request was turned down.
func once[T any](ctx context.Context, l *Ledger, ask func(context.Context, *clientv3.Client) (T, error)) (out T, err error) {
	c, err := l.client()
	if err == nil {
		out, err = ask(ctx, c)
	}
	switch {
	case err == nil || errors.Is(err, errLost):
	case turnedDown(err):
		err = l.denied(err)
	default:
		err = fmt.Errorf("%w: %w", errLost, err)
	}
	return out, err
}

// denied says of an answer of etcd that is a no what is to be mended, where that can be told.
func (l *Ledger) denied(err error) error {
	at := strings.Join(l.Endpoints, ", ")
	switch {
	case errors.Is(err, rpctypes.ErrNoSpace):
		return fleet.Refuse(fleet.CodeClusterUnreachable, "etcd at %s takes no more writes, since its database is full: %w", at, err).
			WithHint("nothing was changed, and members go on running; make room as docs/cluster.md has it: compact, defrag, and disarm the alarm")
	case errors.Is(err, rpctypes.ErrPermissionDenied):
		return fleet.Refuse(fleet.CodeNotAllowed, "etcd at %s does not let this host read and write below %s: %w", at, l.keys.root(), err).
			WithHint("let etcd's root run 'etcdctl role grant-permission ROLE readwrite %s --prefix=true' for its role", l.keys.root())
	case errors.Is(err, rpctypes.ErrAuthFailed), errors.Is(err, rpctypes.ErrUserEmpty), errors.Is(err, rpctypes.ErrUserNotFound):
		return fleet.Refuse(fleet.CodeNotAllowed, "etcd at %s does not know who this host is: %w", at, err).
			WithHint("set cert and key, or username and password_file, in [cluster]")
	}
	return fmt.Errorf("etcd at %s: %w", at, err)
}

// txn commits a transaction once. On errLost nobody knows.
func (l *Ledger) txn(ctx context.Context, conds []clientv3.Cmp, then, otherwise []clientv3.Op) (*clientv3.TxnResponse, error) {
	return once(ctx, l, func(ctx context.Context, c *clientv3.Client) (*clientv3.TxnResponse, error) {
		return c.Txn(ctx).If(conds...).Then(then...).Else(otherwise...).Commit()
	})
}

// gaveUp is why a call that changed nothing ends with ctx: its caller turned away, or its window is over.
func (l *Ledger) gaveUp(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return context.Cause(ctx)
	}
	return l.unreachable(err)
}

// unreachable is why a call ends for which etcd had no answer, and that changed nothing.
func (l *Ledger) unreachable(err error) *fleet.Refusal {
	why := l.silence()
	if errors.As(why, new(distrustError)) {
		return fleet.Refuse(fleet.CodeClusterUnreachable, "etcd does not trust this host, or is not trusted: %w", why).
			WithHint("see ca, cert and key in [cluster]; nothing was changed, and members go on running")
	}
	return fleet.Refuse(fleet.CodeClusterUnreachable, "etcd does not answer: %w", silent{why, err}).
		WithHint("nothing was changed, and members go on running; look at it with 'etcdctl --endpoints %s endpoint status'", strings.Join(l.Endpoints, ","))
}

// silent is err in other words.
type silent struct{ why, err error }

func (s silent) Error() string { return s.why.Error() }
func (s silent) Unwrap() error { return s.err }

// unknown is why a call ends whose request may yet be carried out.
func (l *Ledger) unknown(what string, err error) *fleet.Refusal {
	return fleet.Refuse(fleet.CodeOutcomeUnknown, "nobody knows whether %s: etcd does not answer: %w", what, silent{l.silence(), err}).
		WithHint("see 'fleetdeck reservations' once it does")
}

// pause waits between two questions, and reports whether there is time for another.
func pause(ctx context.Context) bool {
	timer := time.NewTimer(again)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
