package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"
)

// reachTime bounds how long the end points are looked at by connections of our own, to say why etcd does not answer.
const reachTime = time.Second

// glanceTime bounds it for who asks again and again.
const glanceTime = 300 * time.Millisecond

// errMute says that an end point is there and does not serve: it has lost its leader, hangs, or speaks something else.
var errMute = errors.New("connected, but no answer in time")

// distrustError says that an end point and this host cannot agree on who they are.
type distrustError struct{ error }

func (e distrustError) Unwrap() error { return e.error }

// reach is why an end point cannot be used, or nil where a connection finds nothing. etcd's client keeps that to itself: it tries again
// until its caller's time is over.
func reach(ctx context.Context, endpoint string, conf *tls.Config) error {
	network, address := "tcp", ""
	u, err := url.Parse(endpoint)
	if err != nil {
		return err
	}
	if address = u.Host; u.Scheme == "unix" {
		network, address = "unix", u.Path
	}
	raw, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return dialed(err)
	}
	defer raw.Close()
	if conf == nil {
		return nil
	}
	return shake(ctx, raw, u, conf)
}

// dialed is what is behind a failed connection: "connection refused", or that nothing came back.
func dialed(err error) error {
	var sys *os.SyscallError
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case errors.As(err, &dns):
		return dns
	case errors.As(err, &sys):
		return sys.Err
	case errors.As(err, &timeout) && timeout.Timeout():
		return errors.New("no connection in time")
	}
	return err
}

// shake gives what TLS says against us or them. With TLS 1.3 a client hears that its certificate was turned down by the first read only.
func shake(ctx context.Context, raw net.Conn, u *url.URL, conf *tls.Config) error {
	own := conf.Clone()
	own.NextProtos = []string{"h2"} // so that the server speaks first
	if own.ServerName == "" {
		own.ServerName = u.Hostname()
	}
	c := tls.Client(raw, own)
	err := c.HandshakeContext(ctx)
	if err == nil {
		end, _ := ctx.Deadline()
		c.SetReadDeadline(end)
		_, err = c.Read(make([]byte, 1))
	}
	var verify *tls.CertificateVerificationError
	var remote *net.OpError
	switch {
	case err == nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded):
	case errors.As(err, new(tls.RecordHeaderError)):
		return errors.New("it speaks no TLS: is it http://?")
	case errors.As(err, &verify), errors.As(err, &remote) && remote.Op == "remote error":
		return distrustError{err}
	}
	return nil
}

// silence is why etcd does not answer: what connections of our own find at all the end points, in their order. A distrust comes alone,
// since it is what there is to mend.
func (l *Ledger) silence() error {
	ctx, cancel := context.WithTimeout(context.Background(), reachTime)
	defer cancel()
	found := make([]chan error, len(l.Endpoints))
	for i, endpoint := range l.Endpoints {
		found[i] = make(chan error, 1)
		go func() { found[i] <- reach(ctx, endpoint, l.TLS) }()
	}
	var all []string
	for i, endpoint := range l.Endpoints {
		err := <-found[i]
		if errors.As(err, new(distrustError)) {
			return fmt.Errorf("%s: %w", endpoint, err)
		}
		if err == nil {
			err = errMute
		}
		all = append(all, endpoint+": "+err.Error())
	}
	return errors.New(strings.Join(all, "; "))
}
