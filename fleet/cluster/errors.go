package cluster

import (
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// turnedDown reports whether err is an answer of etcd: the request was looked at, and will not be carried out. Everything else,
// such as a lost connection, a change of leader or a deadline, leaves it open.
func turnedDown(err error) bool {
	var e rpctypes.EtcdError
	code := codes.Unknown
	if errors.As(err, &e) {
		code = e.Code()
	} else if s, ok := status.FromError(err); ok {
		code = s.Code()
	}
	switch code {
	case codes.InvalidArgument, codes.PermissionDenied, codes.Unauthenticated, codes.NotFound, codes.FailedPrecondition,
		codes.OutOfRange, codes.Unimplemented:
		// A leader that has just changed is no verdict on the request, though etcd gives some of these codes to that too.
		return !errors.Is(err, rpctypes.ErrNotLeader) && !errors.Is(err, rpctypes.ErrLeaderChanged) && !errors.Is(err, rpctypes.ErrInvalidAuthToken) && !errors.Is(err, rpctypes.ErrAuthOldRevision)
	}
	return errors.Is(err, rpctypes.ErrNoSpace)
}

// noLease reports whether err says that the lease has ended.
func noLease(err error) bool { return errors.Is(err, rpctypes.ErrLeaseNotFound) }
