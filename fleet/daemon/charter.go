package daemon

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/api"
	"fleetdeck/fleet/config"
	"fleetdeck/fleet/launch"
)

// charter reads the charter of role as it is now.
func (d *Daemon) charter(role fleet.Role) ([]byte, error) {
	r, ok := d.Config.Roles[role]
	if !ok {
		return nil, fmt.Errorf("role %q is configured no more", role)
	}
	if r.Charter == "" {
		return config.BuiltinCharter(role), nil
	}
	data, err := config.ReadCharter(r.Charter)
	if err != nil {
		return nil, fmt.Errorf("charter of role %s: %w", role, err)
	}
	return data, nil
}

// newCharterMark makes a mark that no task and no configuration can hold, since nobody can guess it.
func newCharterMark() string { return "{charter:" + rand.Text() + "}" }

// typable is what of a charter can be typed: lines of text, without the control characters that a terminal would act on.
func typable(charter []byte) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, string(charter))
}

func receiptOf(charter string) string {
	sum := sha256.Sum256([]byte(charter))
	return hex.EncodeToString(sum[:])
}

// typeCharter types the charter of the member's role, and its task where the command does not take it, and gives the
// receipt of what it typed.
//
// It is on record right after: a daemon that is killed in between leaves an agent that is told twice, never one that is not told.
func (t *tender) typeCharter(ctx context.Context, term launch.Terminal, p config.Profile) (receipt string, err error) {
	rec := t.record()
	if rec.CharterSHA256 != "" {
		return rec.CharterSHA256, nil
	}
	file, err := t.d.charter(rec.Role)
	if err != nil {
		return "", err
	}
	charter := typable(file)
	text := charter
	if rec.toTell() != "" && !slices.ContainsFunc(rec.command(p), func(arg string) bool {
		return strings.Contains(arg, "{task}") || strings.Contains(arg, "{task_file}")
	}) {
		text += "\n" + rec.toTell()
	}
	if err := t.d.screens.typeText(ctx, t.d, rec, term, api.Input{Text: text, Enter: true}); err != nil {
		return "", fmt.Errorf("type the charter: %w", err)
	}
	receipt = receiptOf(charter)
	return receipt, t.step(func(r *record) error { r.CharterSHA256 = receipt; return nil })
}

// receipt is the hash of the charter that rec's agent was handed. A launch is asked for it at its terminal, so that an agent
// that asks who it is before it is listed is told what it was given.
func (d *Daemon) receipt(ctx context.Context, rec record) string {
	if rec.CharterSHA256 != "" || !rec.launching() {
		return rec.CharterSHA256
	}
	term, err := d.find(ctx, rec)
	if err != nil {
		return ""
	}
	// The gate reports it before it becomes the agent, but an agent that asks at once may be quicker than the report.
	for range receiptTries {
		status, err := term.Status(ctx)
		if err != nil {
			return ""
		}
		if status.Receipt != "" || status.Phase == launch.Exited {
			return status.Receipt
		}
		if !sleep(ctx, receiptPause) {
			break
		}
	}
	return ""
}

const (
	receiptTries = 100
	receiptPause = 20 * time.Millisecond
)

// outdated gives the members, and marks the live ones whose role has another charter by now. A charter that cannot be read marks nobody.
func (d *Daemon) outdated(members []fleet.Member) []fleet.Member {
	members = slices.Clone(members)
	present := map[[2]string]string{}
	for i := range members {
		m := &members[i]
		if !m.Alive() || m.CharterMismatch || m.CharterSHA256 == "" {
			continue
		}
		way := d.Config.Profiles[m.Profile].Charter
		key := [2]string{m.Role, way}
		hash, known := present[key]
		if !known {
			if charter, err := d.charter(m.Role); err == nil {
				text := string(charter)
				if way == config.CharterTyped {
					text = typable(charter)
				}
				hash = receiptOf(text)
			}
			present[key] = hash
		}
		m.CharterOutdated = hash != "" && hash != m.CharterSHA256
	}
	return members
}
