package proof_test

import (
	"context"
	"slices"
	"syscall"
	"time"
)

// harm does one thing after the other to network, nodes and hosts until done, and leaves all of them whole. Its pauses are the pace
// of the faults: nothing is waited for.
func (h *hosts) harm(done <-chan struct{}) {
	hosts, nodes := h.lab.Hosts[:3], h.lab.Hosts[3:]
	rest := func(least, most int) bool {
		select {
		case <-done:
			return false
		case <-time.After(time.Duration(least+h.rand.IntN(most-least)) * time.Millisecond):
			return true
		}
	}
	victims := slices.Clone(h.dispatchers)
	signal := func(host int, s syscall.Signal) {
		for _, d := range victims {
			if h.on[d] == host {
				d.cmd.Process.Signal(s)
			}
		}
	}
	kill := func(whom func(*actor) bool) {
		for _, d := range victims {
			if whom(d) {
				d.cmd.Process.Kill()
				h.killed[d] = true
			}
		}
	}
	for rest(50, 600) {
		host, node := h.rand.IntN(len(hosts)), h.rand.IntN(len(nodes))
		if h.rand.IntN(2) == 0 {
			node = h.leader(node)
		}
		fault := func(what string, hurt, heal func(), most int) {
			h.faults[what]++
			hurt()
			rest(100, most)
			heal()
		}
		switch h.rand.IntN(11) {
		case 0:
			fault("a host cut from one node", func() { hosts[host].Cut(nodes[node]) }, func() { hosts[host].Mend(nodes[node]) }, 3000)
		case 1:
			fault("a host off the network", hosts[host].Unplug, hosts[host].Plug, 4000)
		case 2:
			fault("two hosts cut from each other", func() { hosts[host].Cut(hosts[(host+1)%3]) }, func() { hosts[host].Mend(hosts[(host+1)%3]) }, 1000)
		case 3, 4:
			fault("a node off the network", nodes[node].Unplug, nodes[node].Plug, 4000)
		case 5:
			fault("two nodes cut from each other", func() { nodes[node].Cut(nodes[(node+1)%3]) }, func() { nodes[node].Mend(nodes[(node+1)%3]) }, 3000)
		case 6:
			fault("a node killed", func() { h.etcd.Kill(node) }, func() { h.etcd.Run(node) }, 1000)
		case 7:
			fault("a node paused", func() { h.etcd.Pause(node) }, func() { h.etcd.Resume(node) }, 3000)
		case 8:
			fault("a host paused", func() { signal(host, syscall.SIGSTOP) }, func() { signal(host, syscall.SIGCONT) }, 4000)
		case 9:
			if h.rand.IntN(4) == 0 {
				fault("all dispatchers of a host killed", func() { kill(func(d *actor) bool { return h.on[d] == host }) }, func() {}, 200)
				continue
			}
			victim := victims[h.rand.IntN(len(victims))]
			fault("a dispatcher killed", func() { kill(func(d *actor) bool { return d == victim }) }, func() {}, 200)
		case 10:
			fault("a host whose link comes and goes", func() {
				for rest(20, 100) && h.rand.IntN(8) > 0 {
					hosts[host].Unplug()
					rest(20, 200)
					hosts[host].Plug()
				}
			}, func() {}, 200)
		}
	}
}

// leader is the node that leads, or the given one where nobody says.
func (h *hosts) leader(otherwise int) int {
	for i, socket := range h.etcd.Sockets() {
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		res, err := h.eye.Status(ctx, socket)
		cancel()
		if err == nil && res.Header.MemberId == res.Leader {
			return i
		}
	}
	return otherwise
}
