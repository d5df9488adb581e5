package observe

import (
	"os"

	"golang.org/x/sys/unix"
)

// opens tells when a file is opened or closed, which is what everybody does who takes or gives back a lock on it. It is a hint
// only: a lock may be taken on what was opened long ago.
type opens struct {
	path   string
	notify *os.File // nil where the system has no more of these, or none is needed any more
	tokens chan struct{}
	on     bool
}

func newOpens(path string) *opens {
	o := &opens{path: path, tokens: make(chan struct{}, 1)}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return o
	}
	o.notify = os.NewFile(uintptr(fd), "inotify")
	o.attach()
	go o.run(o.notify)
	return o
}

// attach begins to watch the file, once it is there.
func (o *opens) attach() {
	if o.on || o.notify == nil {
		return
	}
	conn, err := o.notify.SyscallConn()
	if err != nil {
		return
	}
	conn.Control(func(fd uintptr) {
		_, err = unix.InotifyAddWatch(int(fd), o.path, unix.IN_OPEN|unix.IN_CLOSE)
	})
	o.on = err == nil
}

func (o *opens) run(notify *os.File) {
	buf := make([]byte, 4<<10)
	for {
		if _, err := notify.Read(buf); err != nil {
			return // closed
		}
		select {
		case o.tokens <- struct{}{}:
		default:
		}
	}
}

func (o *opens) close() {
	if o.notify != nil {
		o.notify.Close()
	}
}
