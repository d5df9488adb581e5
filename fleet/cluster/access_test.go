package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"fleetdeck/fleet"
	"fleetdeck/fleet/cluster/etcdrun"
)

// authority signs certificates, which it leaves as files in dir.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	made int64
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	a.cert, a.key = a.sign("ca", &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, nil, nil)
	return a
}

// issue makes the certificate of name, for a server on the loopback or a client.
func (a *authority) issue(name string) (cert, key string) {
	a.t.Helper()
	a.sign(name, &x509.Certificate{
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}, a.cert, a.key)
	return a.file(name + ".pem"), a.file(name + ".key")
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

func (a *authority) sign(name string, c, parent *x509.Certificate, by *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	a.made++
	c.SerialNumber, c.Subject = big.NewInt(a.made), pkix.Name{CommonName: name}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	if parent == nil {
		parent, by = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, by)
	if err != nil {
		a.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{name + ".pem": {Type: "CERTIFICATE", Bytes: der}, name + ".key": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(a.file(file), pem.EncodeToMemory(block), 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return made, key
}

// guard makes etcd ask who one is: user may use the keys of the fleet web, and no other.
func guard(t *testing.T, etcd *etcdrun.Cluster, user, password string) {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: etcd.Sockets(), Logger: zap.NewNop(), DialTimeout: window})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, prefix := t.Context(), keys{fleet: "web"}.root()
	step := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	step(c.RoleAdd(ctx, "root"))
	step(c.UserAdd(ctx, "root", "for the test"))
	step(c.UserGrantRole(ctx, "root", "root"))
	step(c.RoleAdd(ctx, "web"))
	step(c.RoleGrantPermission(ctx, "web", prefix, clientv3.GetPrefixRangeEnd(prefix), clientv3.PermissionType(clientv3.PermReadWrite)))
	step(c.UserAddWithOptions(ctx, user, password, &clientv3.UserAddOptions{NoPassword: password == ""}))
	step(c.UserGrantRole(ctx, user, "web"))
	step(c.AuthEnable(ctx))
}

// lives takes a ledger through all that a host does with it.
func lives(t *testing.T, l *Ledger) {
	t.Helper()
	attend(t, l, "one")
	e := reserve(t, l, architect("/src/api"))
	bind(t, l, e)
	tokens := l.Watch(t.Context())
	<-tokens
	reserve(t, l, draft("/src/web"))
	<-tokens
	if entries, err := l.Read(); err != nil || len(entries) != 1 {
		t.Errorf("read: %v, %v, want one reservation", entries, err)
	}
	if err := l.Publish(t.Context(), []fleet.Member{{ID: "M" + e.ID}}); err != nil {
		t.Errorf("publish: %v", err)
	}
	if nodes, err := l.Nodes(t.Context()); err != nil || len(nodes) != 1 || nodes[0].Lost || len(nodes[0].Members) != 1 {
		t.Errorf("nodes: %+v, %v, want this one with its member", nodes, err)
	}
	if info := l.Info(t.Context()); info.Error != "" {
		t.Errorf("info: %s", info.Error)
	}
	if err := l.Vacate(t.Context(), window, e.ID); err != nil {
		t.Errorf("vacate: %v", err)
	}
}

// turnedAway wants that l is refused with words that say why: who is not trusted asks for all of its window.
func refusedEntry(t *testing.T, l *Ledger, says string) {
	t.Helper()
	defer l.Close()
	patience := window
	if says == "certificate" {
		patience = 2 * time.Second
	}
	_, err := l.Reserve(t.Context(), patience, draft("/src/api"), nobody)
	if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), l.Endpoints[0]) {
		t.Errorf("reserve: %v, want %q and %s", err, says, l.Endpoints[0])
	}
}

func TestAClientCertificateIsAHostsNameAndItsRoleTheFleetsPrefix(t *testing.T) {
	t.Parallel()
	ca, other := newAuthority(t), newAuthority(t)
	cert, key := ca.issue("server")
	etcd := etcdrun.StartAt(t, etcdrun.Options{CA: ca.file("ca.pem"), Cert: cert, Key: key}, etcdrun.Place{})
	guard(t, etcd, "kite", "")
	with := func(by *authority, name, fleetName string) *Ledger {
		t.Helper()
		o := options(etcd.Endpoints(), fleetName)
		cert, key := "", ""
		if name != "" {
			cert, key = by.issue(name)
		}
		var err error
		if o.TLS, err = TLS(ca.file("ca.pem"), cert, key); err != nil {
			t.Fatal(err)
		}
		l := New(o)
		t.Cleanup(func() { l.Close() })
		return l
	}
	lives(t, with(ca, "kite", "web"))
	refusedEntry(t, with(ca, "kite", "other"), "permission denied")
	refusedEntry(t, with(ca, "stranger", "web"), "permission denied")
	refusedEntry(t, with(ca, "", "web"), "certificate")
	refusedEntry(t, with(other, "kite", "web"), "certificate")
	// A server that another authority speaks for is not believed.
	foreign := with(ca, "kite", "web")
	conf, err := TLS(other.file("ca.pem"), ca.file("kite.pem"), ca.file("kite.key"))
	if err != nil {
		t.Fatal(err)
	}
	foreign.TLS = conf
	refusedEntry(t, foreign, "certificate")
}

func TestAPasswordServesWhereCertificatesDoNot(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	cert, key := ca.issue("server")
	etcd := etcdrun.StartAt(t, etcdrun.Options{Cert: cert, Key: key}, etcdrun.Place{})
	guard(t, etcd, "crane", "correct")
	with := func(user, password, fleetName string) *Ledger {
		t.Helper()
		o := options(etcd.Endpoints(), fleetName)
		o.Username, o.Password = user, password
		var err error
		if o.TLS, err = TLS(ca.file("ca.pem"), "", ""); err != nil {
			t.Fatal(err)
		}
		l := New(o)
		t.Cleanup(func() { l.Close() })
		return l
	}
	lives(t, with("crane", "correct", "web"))
	refusedEntry(t, with("crane", "correct", "other"), "permission denied")
	refusedEntry(t, with("crane", "wrong", "web"), "authentication failed")
	refusedEntry(t, with("", "", "web"), "user name is empty")
}
