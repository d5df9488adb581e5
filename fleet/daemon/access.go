package daemon

import (
	"crypto/subtle"
	"net/http"
	"strings"

	"fleetdeck/fleet"
	"fleetdeck/fleet/plain"
)

// caller finds the member whose token came with the request: nil is the operator.
func (d *Daemon) caller(r *http.Request) (*record, error) {
	auth := r.Header.Get("Authorization")
	if auth == "" {
		return nil, nil
	}
	token := strings.TrimPrefix(auth, "Bearer ")
	id, _, _ := strings.Cut(token, ".")
	if rec, ok := d.reg.get(id); ok && !rec.over() && rec.TokenSHA256 != "" &&
		subtle.ConstantTimeCompare([]byte(hashToken(token)), []byte(rec.TokenSHA256)) == 1 {
		return &rec, nil
	}
	return nil, fleet.Refuse(fleet.CodeNotAllowed, "this token is no live member's")
}

// allow checks that the caller's role may do what it asks. The operator may do everything.
func (d *Daemon) allow(caller *record, what string) error {
	if caller == nil {
		return nil
	}
	for _, may := range d.Config.Roles[caller.Role].May {
		if may == what {
			return nil
		}
	}
	return d.forbid(caller, "role %s may not %s", caller.Role, what)
}

// lookup finds the record that the path names: by its id, or the start of one that is unmistakable.
func (d *Daemon) lookup(r *http.Request) (record, error) {
	id := r.PathValue("id")
	view := d.reg.view()
	if rec, ok := view.records[id]; ok {
		return *rec, nil
	}
	return record{}, fleet.Refuse(fleet.CodeNotFound, "no such member: %s", plain.Clean(id, 80)).WithHint("see 'fleetdeck members'")
}
