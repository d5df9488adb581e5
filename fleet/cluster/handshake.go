package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"time"
)

// shakeTime bounds how long an end point is asked what it has against our certificate, or we against its.
const shakeTime = time.Second

// distrust is why an end point and this host cannot agree on who they are, or nil. etcd's client keeps that to itself: it tries
// again until its caller's time is over. With TLS 1.3 a client hears that its certificate was turned down by the first read only.
func (l *Ledger) distrust() error {
	if l.TLS == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), shakeTime)
	defer cancel()
	found := make(chan error, len(l.Endpoints))
	for _, endpoint := range l.Endpoints {
		go func() { found <- shake(ctx, endpoint, l.TLS) }()
	}
	for range l.Endpoints {
		if err := <-found; err != nil {
			return err
		}
	}
	return nil
}

// shake gives what TLS says, and nothing of a network that is away.
func shake(ctx context.Context, endpoint string, conf *tls.Config) error {
	u, err := url.Parse(endpoint)
	if err != nil {
		return nil
	}
	raw, err := new(net.Dialer).DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return nil
	}
	defer raw.Close()
	own := conf.Clone()
	own.NextProtos = []string{"h2"} // so that the server speaks first
	if own.ServerName == "" {
		own.ServerName = u.Hostname()
	}
	c := tls.Client(raw, own)
	if err = c.HandshakeContext(ctx); err == nil {
		end, _ := ctx.Deadline()
		c.SetReadDeadline(end)
		_, err = c.Read(make([]byte, 1))
	}
	var verify *tls.CertificateVerificationError
	var remote *net.OpError
	switch {
	case err == nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded):
		return nil
	case errors.As(err, &verify), errors.As(err, &remote) && remote.Op == "remote error":
		return fmt.Errorf("%s: %w", endpoint, err)
	}
	return nil
}
