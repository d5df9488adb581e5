package process

import "fmt"

// Parent gives the pid of the parent that pid has now; the first process has none, 0.
func Parent(pid int) (int, error) {
	e, err := lookup(pid)
	if err != nil {
		return 0, fmt.Errorf("parent of process %d: %w", pid, err)
	}
	return e.parent, nil
}
