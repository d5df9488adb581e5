package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf16"

	"fleetdeck/fleet"
	"fleetdeck/fleet/plain"
)

// printJSON prints one document.
func (g *globals) printJSON(v any) error {
	return g.encode(v, "  ")
}

// encode writes v as JSON. What cannot be seen where it stands is escaped, so that it does no harm where it is printed to a terminal:
// in JSON that is the same text.
func (g *globals) encode(v any, indent string) error {
	g.printed = true
	var doc bytes.Buffer
	enc := json.NewEncoder(&doc)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if err := enc.Encode(v); err != nil {
		return err
	}
	var out strings.Builder
	for _, r := range doc.String() {
		switch {
		case r == '\n' || plain.Printable(r):
			out.WriteRune(r)
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&out, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	_, err := io.WriteString(g.out, out.String())
	return err
}

// table prints rows in columns. Cells may come from anywhere, and are cleaned.
type table struct {
	w *tabwriter.Writer
}

func newTable(w io.Writer, header ...string) *table {
	t := &table{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	fmt.Fprintln(t.w, strings.Join(header, "\t"))
	return t
}

func (t *table) row(cells ...string) {
	for i, c := range cells {
		cells[i] = plain.Clean(c, -1)
		if cells[i] == "" {
			cells[i] = "-"
		}
	}
	fmt.Fprintln(t.w, strings.Join(cells, "\t"))
}

func (t *table) flush() error { return t.w.Flush() }

// shorten writes the home directory as "~".
func shorten(path string) string {
	home, _ := os.UserHomeDir()
	return fleet.ShortPath(path, home)
}

func age(since, now time.Time) string {
	if since.IsZero() {
		return ""
	}
	return duration(now.Sub(since))
}

// duration is d to the precision that a glance needs.
func duration(d time.Duration) string {
	if d < 0 {
		d = 0
	}
	switch {
	case d < 100*time.Second:
		return fmt.Sprintf("%.0fs", d.Seconds())
	case d < 100*time.Minute:
		return fmt.Sprintf("%.0fm", d.Minutes())
	case d < 48*time.Hour:
		return fmt.Sprintf("%.0fh", d.Hours())
	}
	return fmt.Sprintf("%.0fd", d.Hours()/24)
}

// printLine prints one document on one line, as one of many.
func (g *globals) printLine(v any) error {
	return g.encode(v, "")
}

// finishJSON sees to it that a command with --json prints a document also where it has none of its own: the error that it
// came to, or what it said.
func (g *globals) finishJSON(err error) error {
	var code exitError
	if !g.json || g.printed || errors.As(err, &code) {
		return nil
	}
	if err != nil {
		r := fleet.Refusal{Code: fleet.CodeInternal, Message: err.Error()}
		if known := fleet.RefusalOf(err); known != nil {
			r = *known
		} else if n := exitCode(err); n == exitUsage {
			r.Code = fleet.CodeBadRequest
		} else if n == exitNotFound {
			r.Code = fleet.CodeNotFound
		}
		return g.printJSON(map[string]any{"error": r})
	}
	if g.said != "" {
		return g.printJSON(map[string]string{"message": g.said})
	}
	return nil
}
