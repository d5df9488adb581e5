package cluster

import (
	"context"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"fleetdeck/fleet"
)

// wire is a connection to etcd that can lose answers: a proxy, through which requests go on while nothing comes back.
type wire struct {
	t      *testing.T
	listen net.Listener
	to     string

	mu    sync.Mutex // guards deaf and conns
	deaf  bool
	conns []net.Conn
}

func newWire(t *testing.T, endpoint string) *wire {
	t.Helper()
	u, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{t: t, listen: l, to: u.Host}
	t.Cleanup(func() { l.Close(); w.cut() })
	go w.serve()
	return w
}

func (w *wire) endpoint() string { return "http://" + w.listen.Addr().String() }

func (w *wire) serve() {
	for {
		in, err := w.listen.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", w.to)
		if err != nil {
			in.Close()
			continue
		}
		w.mu.Lock()
		w.conns = append(w.conns, in, out)
		w.mu.Unlock()
		go io.Copy(out, in)
		go io.Copy(deafWriter{w, in}, out)
	}
}

type deafWriter struct {
	w *wire
	net.Conn
}

func (d deafWriter) Write(p []byte) (int, error) {
	d.w.mu.Lock()
	deaf := d.w.deaf
	d.w.mu.Unlock()
	if deaf {
		return len(p), nil
	}
	return d.Conn.Write(p)
}

// loseAnswers lets requests through and no answers, until heal.
func (w *wire) loseAnswers() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deaf = true
}

// heal cuts what is connected, and lets answers through again.
func (w *wire) heal() {
	w.mu.Lock()
	w.deaf = false
	w.mu.Unlock()
	w.cut()
}

func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		c.Close()
	}
	w.conns = nil
}

func TestALostAnswerIsFoundOut(t *testing.T) {
	etcd := oneNode(t)
	w := newWire(t, etcd.Endpoints()[0])
	behind := open(t, etcd.Endpoints())
	l := behind.again(t, func(o *Options) { o.Endpoints = []string{w.endpoint()} })
	d := draft("/src/api")
	d.ID = "mine"

	// A reservation consists of a grant and a transaction: with the wire deaf only now and then, either is lost.
	stop := make(chan struct{})
	var breaking sync.WaitGroup
	view := func(context.Context) (fleet.Roster, error) {
		w.loseAnswers()
		breaking.Go(func() {
			heal := time.NewTimer(300 * time.Millisecond)
			defer heal.Stop()
			select {
			case <-heal.C:
			case <-stop:
			}
			w.heal()
		})
		return fleet.Roster{}, nil
	}
	e, err := l.Reserve(t.Context(), window, d, view)
	close(stop)
	breaking.Wait()
	if err != nil || e.ID != "mine" {
		t.Errorf("reserve: %+v, %v, want mine", e, err)
	}
	if h, err := behind.find(t.Context(), "mine"); err != nil || h == nil {
		t.Errorf("there stands %+v, %v, want mine", h, err)
	}
}

func TestATransactionWhoseAnswerIsLostIsKnownToBeHeld(t *testing.T) {
	t.Parallel()
	etcd := oneNode(t)
	w := newWire(t, etcd.Endpoints()[0])
	behind := open(t, etcd.Endpoints())
	l := behind.again(t, func(o *Options) { o.Endpoints = []string{w.endpoint()} })
	e := reserve(t, l, draft("/src/api"))
	h, err := l.find(t.Context(), e.ID)
	if err != nil {
		t.Fatal(err)
	}
	// The bind reaches etcd, and its answer reaches nobody.
	w.loseAnswers()
	next := *h
	next.State = member
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if done, err := l.put(short, h, &next, 0); err == nil {
		t.Fatalf("put: %t without an answer", done)
	}
	await(t, "it was carried out", func() bool {
		h, err := behind.find(t.Context(), e.ID)
		return err == nil && h.State == member
	})
	w.heal()
	if err := l.Bind(t.Context(), e.ID, "M"+e.ID); err != nil {
		t.Errorf("bind: %v, want it found out", err)
	}
}

func TestWithoutAnyAnswerTheOutcomeIsUnknownAndTheGraceEndsIt(t *testing.T) {
	t.Parallel()
	etcd := oneNode(t)
	l := open(t, etcd.Endpoints())
	d := draft("/src/api")
	d.ID, d.Grace = "mine", 2*time.Second
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w, err := l.want(d)
	if err != nil {
		t.Fatal(err)
	}
	seen, err := l.txn(ctx, nil, w.looks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	wire := newWire(t, etcd.Endpoints()[0])
	far := l.again(t, func(o *Options) { o.Endpoints = []string{wire.endpoint()} })
	w.l = far
	granted, err := far.client()
	if err != nil {
		t.Fatal(err)
	}
	lease, err := granted.Grant(ctx, 2)
	if err != nil {
		t.Fatal(err)
	}
	r, err := w.judge(seen)
	if err != nil {
		t.Fatal(err)
	}
	conds, then, err := w.change(r, &w.hold, lease.ID)
	if err != nil {
		t.Fatal(err)
	}
	wire.loseAnswers()
	short, stop := context.WithTimeout(ctx, 500*time.Millisecond)
	defer stop()
	if _, err := far.txn(short, conds, then, nil); err == nil {
		t.Fatal("an answer came through")
	}
	if held, err := far.wasHeld(short, &w.hold, lease.ID); held || err == nil {
		t.Errorf("was held: %t, %v, want that nobody knows", held, err)
	}
	await(t, "its grace ends it", func() bool {
		h, err := l.find(ctx, "mine")
		return err == nil && h == nil
	})
	reserve(t, l, draft("/src/api"))
}
