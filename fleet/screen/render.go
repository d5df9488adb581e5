package screen

import (
	"strings"
	"unicode/utf8"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"

	"fleetdeck/fleet/plain"
)

// renderLine gives a line of cells as plain text and as text with SGR sequences, at most cols cells wide and without
// the blanks at its end. The styled one ends with the style that it began with.
func renderLine(cols int, cell func(x int) *uv.Cell) (text, styled string) {
	var words, line strings.Builder
	var pen uv.Style
	blanks := 0 // that were seen and may be at the end
	for x := 0; x < cols; {
		c := cell(x)
		if c == nil {
			c = &uv.EmptyCell
		}
		width := min(max(1, c.Width), cols-x)
		x += width
		s := glyph(c.Content, width)
		if s == " " && c.Style.IsZero() {
			blanks++
			continue
		}
		if blanks > 0 {
			words.WriteString(strings.Repeat(" ", blanks))
			if !pen.IsZero() {
				line.WriteString(ansi.ResetStyle)
				pen = uv.Style{}
			}
			line.WriteString(strings.Repeat(" ", blanks))
			blanks = 0
		}
		words.WriteString(s)
		if !c.Style.Equal(&pen) {
			line.WriteString(c.Style.Diff(&pen))
			pen = c.Style
		}
		line.WriteString(s)
	}
	if !pen.IsZero() {
		line.WriteString(ansi.ResetStyle)
	}
	return strings.TrimRight(words.String(), " "), line.String()
}

// glyph gives the content of a cell as printable text of exactly its width.
func glyph(content string, width int) string {
	if len(content) == 1 && content[0] >= ' ' && content[0] < 0x7f && width == 1 {
		return content
	}
	s := plain.Text(content)
	if s != "" && ansi.StringWidth(s) == width {
		return s
	}
	// A cluster that is joined by invisible characters: its first member stands for it.
	_, n := utf8.DecodeRuneInString(s)
	if n > 0 && ansi.StringWidth(s[:n]) == width {
		return s[:n]
	}
	return strings.Repeat(" ", width)
}
