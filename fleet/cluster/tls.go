package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// TLS is how to talk to a cluster of https:// end points: it is believed by the authorities in the file ca, or by the system's, and shown
// the certificate in cert and key, where there is one.
func TLS(ca, cert, key string) (*tls.Config, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, fmt.Errorf("read the cluster's authorities: %w", err)
		}
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s holds no certificate in PEM form", ca)
		}
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("read this host's certificate %s and key %s: %w", cert, key, err)
		}
		conf.Certificates = []tls.Certificate{pair}
	}
	return conf, nil
}
