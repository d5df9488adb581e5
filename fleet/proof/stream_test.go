package proof_test

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"fleetdeck/fleet/proof"
)

// mono is CLOCK_MONOTONIC, on which all histories are: one clock for all processes of a boot.
func mono() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err)
	}
	return ts.Nano()
}

// phase says what an event is.
type phase uint8

const (
	called   phase = iota // an operation begins; if nothing follows its result is unknown
	returned              // it has its answer
	arrived               // an agent begins to work
	left                  // it has ended
	marked                // all that was asked for is done
)

// event is what a process of a test tells the test of itself, as it happens: what it told before it was killed is not lost.
type event struct {
	Phase phase
	Seq   uint64
	Op    proof.Op
	Stay  proof.Stay
}

// teller writes events to standard output.
type teller struct {
	mu  sync.Mutex // guards the rest
	enc *gob.Encoder
	seq uint64
}

func newTeller() *teller { return &teller{enc: gob.NewEncoder(os.Stdout)} }

func (t *teller) tell(e event) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.Seq == 0 {
		t.seq++
		e.Seq = t.seq
	}
	if err := t.enc.Encode(e); err != nil {
		os.Exit(1) // the test is gone
	}
	return e.Seq
}

// op carries out do as an operation that is on record from before its beginning.
func (t *teller) op(op proof.Op, do func(*proof.Op)) proof.Op {
	op.Call = mono()
	seq := t.tell(event{Phase: called, Op: op})
	do(&op)
	op.Return = mono()
	t.tell(event{Phase: returned, Seq: seq, Op: op})
	return op
}

// actor is a process of a test, and what it told.
type actor struct {
	cmd    *exec.Cmd
	client int
	stdin  io.WriteCloser
	marks  chan struct{}
	// ended is closed once it is dead, and all that it told is read.
	ended chan struct{}

	mu    sync.Mutex // guards the rest
	open  map[uint64]proof.Op
	ops   []proof.Op
	here  map[uint64]proof.Stay
	stays []proof.Stay
}

// begin starts this test binary as the process named by args.
func begin(client int, args ...string) (*actor, error) { return beginIn(nil, client, args...) }

// beginIn is begin where the command enter leads.
func beginIn(enter []string, client int, args ...string) (*actor, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	argv := append(append(enter[:len(enter):len(enter)], exe), args...)
	p := &actor{
		cmd: exec.Command(argv[0], argv[1:]...), client: client, marks: make(chan struct{}, 1), ended: make(chan struct{}),
		open: map[uint64]proof.Op{}, here: map[uint64]proof.Stay{},
	}
	p.cmd.Stderr = os.Stderr
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %v: %w", args, err)
	}
	go func() {
		for dec := gob.NewDecoder(out); ; {
			var e event
			if err := dec.Decode(&e); err != nil {
				break // it is dead: what it was writing last is not whole
			}
			p.hear(e)
		}
		p.cmd.Wait()
		p.bury()
		close(p.ended)
	}()
	return p, nil
}

func (p *actor) hear(e event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e.Op.Client = p.client
	switch e.Phase {
	case called:
		p.open[e.Seq] = e.Op
	case returned:
		delete(p.open, e.Seq)
		p.ops = append(p.ops, e.Op)
	case arrived:
		p.here[e.Seq] = e.Stay
	case left:
		delete(p.here, e.Seq)
		p.stays = append(p.stays, e.Stay)
	case marked:
		p.marks <- struct{}{}
	}
}

// bury puts on record what a dead process leaves open.
func (p *actor) bury() {
	now := mono()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, op := range p.open {
		op.Return = now
		p.ops = append(p.ops, op)
	}
	for _, s := range p.here {
		p.stays = append(p.stays, s)
	}
	clear(p.open)
	clear(p.here)
}

// take gives what the process told since it was asked last.
func (p *actor) take() (ops []proof.Op, stays []proof.Stay) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ops, stays, p.ops, p.stays = p.ops, p.stays, nil, nil
	return ops, stays
}

// ask asks for n more operations, and says what else a process of its kind needs to know.
func (p *actor) ask(n int, more ...any) { fmt.Fprintln(p.stdin, append([]any{n}, more...)...) } // a dead one does not answer, which is seen

// await waits until the process did all that it was asked for, or is dead.
func (p *actor) await(patience time.Duration) (alive bool, err error) {
	select {
	case <-p.marks:
		return true, nil
	case <-p.ended:
		return false, nil
	case <-time.After(patience):
		return true, errors.New("a process gives no sign")
	}
}

// end ends the process.
func (p *actor) end() {
	p.stdin.Close()
	p.cmd.Process.Kill()
	<-p.ended
}
