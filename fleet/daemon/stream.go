package daemon

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"time"
)

const (
	// writeTimeout is how long a reader of a stream may be stuck before it is dropped.
	writeTimeout = 10 * time.Second
	pingEvery    = 15 * time.Second
)

// getEvents streams events as server-sent events. Last-Event-ID, or ?after=, names the last one that the reader has;
// ?follow=false ends after those that are there.
func (d *Daemon) getEvents(w http.ResponseWriter, r *http.Request) error {
	after := r.Header.Get("Last-Event-ID")
	if after == "" {
		after = r.URL.Query().Get("after")
	}
	seq, _ := strconv.ParseUint(after, 10, 64)
	follow := r.URL.Query().Get("follow") != "false"

	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	out := http.NewResponseController(w)
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	for {
		list, more := d.events.after(seq)
		out.SetWriteDeadline(time.Now().Add(writeTimeout))
		for _, e := range list {
			data, err := json.Marshal(e)
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintf(w, "id: %d\nevent: %s\ndata: %s\n\n", e.Seq, e.Kind, data); err != nil {
				return nil
			}
			seq = e.Seq
		}
		if out.Flush() != nil || !follow {
			return nil
		}
		select {
		case <-more:
		case <-ping.C:
			out.SetWriteDeadline(time.Now().Add(writeTimeout))
			if _, err := fmt.Fprint(w, ": ping\n\n"); err != nil {
				return nil
			}
		case <-r.Context().Done():
			return nil
		case <-d.ctx.Done():
			return nil
		}
	}
}

func (d *Daemon) pid() int { return os.Getpid() }
