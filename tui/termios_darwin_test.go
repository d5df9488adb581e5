package tui

import "golang.org/x/sys/unix"

// modes are the modes of the terminal as the system has them.
func (x *terminal) modes() *unix.Termios {
	x.t.Helper()
	m, err := unix.IoctlGetTermios(int(x.tty.Fd()), unix.TIOCGETA)
	if err != nil {
		x.t.Fatal(err)
	}
	return m
}
