//go:build !linux

package observe

// opens tells nothing on systems where nobody can see who holds a lock anyway.
type opens struct{ tokens chan struct{} }

func newOpens(string) *opens { return &opens{} }

func (o *opens) attach() {}

func (o *opens) close() {}
