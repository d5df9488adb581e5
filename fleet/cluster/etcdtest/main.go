// Etcdtest is one node of a real etcd server, for the tests of fleet/cluster, fleet/proof and fleet/ledger/ledgertest, which start
// it as a process of its own and kill it. It is a module of its own, so that the server is no dependency of the program.
//
// It prints "ready" once it serves clients, and ends with its standard input: a test that dies takes its servers with it.
package main

import (
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "etcdtest:", err)
		os.Exit(1)
	}
}

func run() error {
	name := flag.String("name", "one", "this node's name")
	dir := flag.String("dir", "", "its data directory; one that holds data already is gone on with")
	client := flag.String("client", "", "URL to serve clients on")
	peer := flag.String("peer", "", "URL to serve the other nodes on")
	nodes := flag.String("nodes", "", "all nodes with their peer URLs: a=http://…,b=http://…")
	socket := flag.String("socket", "", "a unix socket to serve clients on too, in plain text, whatever becomes of the network")
	ca := flag.String("ca", "", "the authorities that a client's certificate must come from")
	cert := flag.String("cert", "", "this node's certificate, for clients")
	key := flag.String("key", "", "its key")
	sync := flag.Bool("fsync", false, "write through to the disk, as a server does that is none of a test's")
	quota := flag.Int64("quota", 0, "bytes that its database may have; 0 means etcd's own limit")
	flag.Parse()

	cfg := embed.NewConfig()
	cfg.Name, cfg.Dir, cfg.InitialCluster = *name, *dir, *nodes
	// Tests kill the process, not the machine: what it wrote is in the page cache still.
	cfg.UnsafeNoFsync = !*sync
	cfg.LogLevel = "error"
	cfg.QuotaBackendBytes = *quota
	clientURL, err := url.Parse(*client)
	if err != nil {
		return fmt.Errorf("client URL: %w", err)
	}
	peerURL, err := url.Parse(*peer)
	if err != nil {
		return fmt.Errorf("peer URL: %w", err)
	}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{*clientURL}, []url.URL{*clientURL}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{*peerURL}, []url.URL{*peerURL}
	if *socket != "" {
		os.Remove(*socket) // of a node that was killed
		cfg.ListenClientUrls = append(cfg.ListenClientUrls, url.URL{Scheme: "unix", Path: *socket})
	}
	if *cert != "" {
		cfg.ClientTLSInfo = transport.TLSInfo{CertFile: *cert, KeyFile: *key, TrustedCAFile: *ca, ClientCertAuth: *ca != ""}
	}
	server, err := embed.StartEtcd(cfg)
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	defer server.Close()
	parentGone := make(chan struct{})
	go func() {
		io.Copy(io.Discard, os.Stdin)
		close(parentGone)
	}()
	select {
	case <-server.Server.ReadyNotify():
		fmt.Println("ready")
	case err := <-server.Err():
		return err
	case <-parentGone:
		return nil
	}
	select {
	case err := <-server.Err():
		return err
	case <-parentGone:
		return nil
	}
}
