package tui

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// drawing shows a frame with a letter for each place, four columns to a letter.
func drawing(f frame, w, h int) string {
	rows := make([][]byte, h)
	for y := range rows {
		rows[y] = []byte(strings.Repeat(".", w))
	}
	for _, p := range places(f) {
		for y := p.y; y < p.y+p.h; y++ {
			for x := p.x; x < p.x+p.w; x++ {
				rows[y][x] = p.letter
			}
		}
	}
	var b strings.Builder
	for _, r := range rows {
		for x := 0; x < w; x += 4 {
			b.WriteByte(r[x])
		}
		b.WriteByte('\n')
	}
	return b.String()
}

type place struct {
	rect
	letter byte
}

func places(f frame) []place {
	return []place{
		{f.header, 'H'}, {f.alerts, '!'}, {f.list, 'L'}, {f.detail, 'D'},
		{f.reservations, 'R'}, {f.events, 'E'}, {f.notices, 'N'}, {f.footer, 'F'},
	}
}

func TestLayout(t *testing.T) {
	tests := []struct {
		name            string
		w, h            int
		view            view
		alerts, notices int
		want            string
	}{
		{"home, wide", 120, 30, viewTrees, 1, 1, `
			HHHHHHHHHHHHHHHHHHHHHHHHHHHHHH
			HHHHHHHHHHHHHHHHHHHHHHHHHHHHHH
			!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!
			LLLLLLLLLLLLLLLL.DDDDDDDDDDDDD
			LLLLLLLLLLLLLLLL.DDDDDDDDDDDDD
			LLLLLLLLLLLLLLLL.DDDDDDDDDDDDD
			LLLLLLLLLLLLLLLL.DDDDDDDDDDDDD
			LLLLLLLLLLLLLLLL.DDDDDDDDDDDDD
			LLLLLLLLLLLLLLLL.DDDDDDDDDDDDD
			LLLLLLLLLLLLLLLL.DDDDDDDDDDDDD
			LLLLLLLLLLLLLLLL.DDDDDDDDDDDDD
			LLLLLLLLLLLLLLLL.DDDDDDDDDDDDD
			LLLLLLLLLLLLLLLL.DDDDDDDDDDDDD
			LLLLLLLLLLLLLLLL.DDDDDDDDDDDDD
			LLLLLLLLLLLLLLLL.DDDDDDDDDDDDD
			LLLLLLLLLLLLLLLL.DDDDDDDDDDDDD
			LLLLLLLLLLLLLLLL.DDDDDDDDDDDDD
			LLLLLLLLLLLLLLLL.DDDDDDDDDDDDD
			LLLLLLLLLLLLLLLL.DDDDDDDDDDDDD
			LLLLLLLLLLLLLLLL.DDDDDDDDDDDDD
			LLLLLLLLLLLLLLLL.DDDDDDDDDDDDD
			LLLLLLLLLLLLLLLL.DDDDDDDDDDDDD
			RRRRRRRRRRRRRRRR.EEEEEEEEEEEEE
			RRRRRRRRRRRRRRRR.EEEEEEEEEEEEE
			RRRRRRRRRRRRRRRR.EEEEEEEEEEEEE
			RRRRRRRRRRRRRRRR.EEEEEEEEEEEEE
			RRRRRRRRRRRRRRRR.EEEEEEEEEEEEE
			RRRRRRRRRRRRRRRR.EEEEEEEEEEEEE
			NNNNNNNNNNNNNNNNNNNNNNNNNNNNNN
			FFFFFFFFFFFFFFFFFFFFFFFFFFFFFF
		`},
		{"home, stacked", 80, 24, viewTrees, 0, 0, `
			HHHHHHHHHHHHHHHHHHHH
			HHHHHHHHHHHHHHHHHHHH
			LLLLLLLLLLLLLLLLLLLL
			LLLLLLLLLLLLLLLLLLLL
			LLLLLLLLLLLLLLLLLLLL
			LLLLLLLLLLLLLLLLLLLL
			LLLLLLLLLLLLLLLLLLLL
			LLLLLLLLLLLLLLLLLLLL
			LLLLLLLLLLLLLLLLLLLL
			LLLLLLLLLLLLLLLLLLLL
			LLLLLLLLLLLLLLLLLLLL
			DDDDDDDDDDDDDDDDDDDD
			DDDDDDDDDDDDDDDDDDDD
			DDDDDDDDDDDDDDDDDDDD
			DDDDDDDDDDDDDDDDDDDD
			DDDDDDDDDDDDDDDDDDDD
			DDDDDDDDDDDDDDDDDDDD
			DDDDDDDDDDDDDDDDDDDD
			DDDDDDDDDDDDDDDDDDDD
			RRRRRRRRRRRRRRRRRRRR
			RRRRRRRRRRRRRRRRRRRR
			RRRRRRRRRRRRRRRRRRRR
			RRRRRRRRRRRRRRRRRRRR
			FFFFFFFFFFFFFFFFFFFF
		`},
		{"home, smallest, with everything to say", 40, 10, viewTrees, 9, 9, `
			HHHHHHHHHH
			!!!!!!!!!!
			LLLLLLLLLL
			LLLLLLLLLL
			LLLLLLLLLL
			LLLLLLLLLL
			LLLLLLLLLL
			NNNNNNNNNN
			NNNNNNNNNN
			FFFFFFFFFF
		`},
		{"members, wide", 112, 12, viewMembers, 0, 0, `
			HHHHHHHHHHHHHHHHHHHHHHHHHHHH
			LLLLLLLLLLLLLLL.DDDDDDDDDDDD
			LLLLLLLLLLLLLLL.DDDDDDDDDDDD
			LLLLLLLLLLLLLLL.DDDDDDDDDDDD
			LLLLLLLLLLLLLLL.DDDDDDDDDDDD
			LLLLLLLLLLLLLLL.DDDDDDDDDDDD
			LLLLLLLLLLLLLLL.DDDDDDDDDDDD
			LLLLLLLLLLLLLLL.DDDDDDDDDDDD
			LLLLLLLLLLLLLLL.DDDDDDDDDDDD
			LLLLLLLLLLLLLLL.DDDDDDDDDDDD
			LLLLLLLLLLLLLLL.DDDDDDDDDDDD
			FFFFFFFFFFFFFFFFFFFFFFFFFFFF
		`},
		{"events have no detail", 60, 16, viewEvents, 0, 2, `
			HHHHHHHHHHHHHHH
			HHHHHHHHHHHHHHH
			LLLLLLLLLLLLLLL
			LLLLLLLLLLLLLLL
			LLLLLLLLLLLLLLL
			LLLLLLLLLLLLLLL
			LLLLLLLLLLLLLLL
			LLLLLLLLLLLLLLL
			LLLLLLLLLLLLLLL
			LLLLLLLLLLLLLLL
			LLLLLLLLLLLLLLL
			LLLLLLLLLLLLLLL
			LLLLLLLLLLLLLLL
			NNNNNNNNNNNNNNN
			NNNNNNNNNNNNNNN
			FFFFFFFFFFFFFFF
		`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := drawing(arrange(tt.w, tt.h, tt.view, tt.alerts, tt.notices), tt.w, tt.h)
			want := strings.ReplaceAll(strings.Trim(tt.want, "\n\t"), "\t", "") + "\n"
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("layout (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLayoutPlacesNeitherOverlapNorReachOverTheEdge(t *testing.T) {
	for w := 0; w <= 230; w += 3 {
		for h := 0; h <= 80; h++ {
			for v := viewTrees; v <= viewEvents; v++ {
				for _, n := range []int{0, 1, 3, 20} {
					check(t, arrange(w, h, v, n, n), w, h, fmt.Sprintf("arrange(%d, %d, %d, %d, %d)", w, h, v, n, n))
				}
			}
		}
	}
}

func check(t *testing.T, f frame, w, h int, what string) {
	t.Helper()
	if f.tooSmall {
		if w >= minWidth && h >= minHeight {
			t.Fatalf("%s says that it is too small", what)
		}
		return
	}
	all := places(f)
	for i, p := range all {
		if p.empty() {
			continue
		}
		if p.x < 0 || p.y < 0 || p.x+p.w > w || p.y+p.h > h {
			t.Fatalf("%s: %c reaches over the edge: %+v", what, p.letter, p.rect)
		}
		for _, q := range all[:i] {
			if !q.empty() && p.x < q.x+q.w && q.x < p.x+p.w && p.y < q.y+q.h && q.y < p.y+p.h {
				t.Fatalf("%s: %c %+v overlaps %c %+v", what, p.letter, p.rect, q.letter, q.rect)
			}
		}
	}
	if f.list.h < 3 || f.list.w < 37 {
		t.Fatalf("%s: the list has no room: %+v", what, f.list)
	}
}
