package tui

import (
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

type part struct {
	rect
	letter byte
}

func places(f frame) []part {
	return []part{
		{f.header, 'H'}, {f.alerts, '!'}, {f.list, 'L'}, {f.detail, 'D'},
		{f.reservations, 'R'}, {f.events, 'E'}, {f.notices, 'N'}, {f.footer, 'F'},
	}
}

func TestLayout(t *testing.T) {
	tests := []struct {
		name string
		shape
		want string
	}{
		{"home, wide", shape{w: 120, h: 30, view: viewTrees, alerts: 1, notices: 1}, `
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
		{"home, stacked", shape{w: 80, h: 24, view: viewTrees, entries: true}, `
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
		{"home, stacked, nothing reserved", shape{w: 80, h: 24, view: viewTrees}, `
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
			DDDDDDDDDDDDDDDDDDDD
			DDDDDDDDDDDDDDDDDDDD
			FFFFFFFFFFFFFFFFFFFF
		`},
		{"home, smallest, with everything to say", shape{w: 40, h: 10, view: viewTrees, alerts: 9, notices: 9}, `
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
		{"members, wide", shape{w: 112, h: 12, view: viewMembers, alerts: 0, notices: 0}, `
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
		{"events, stacked", shape{w: 60, h: 16, view: viewEvents, alerts: 0, notices: 2}, `
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
			got := drawing(arrange(tt.shape), tt.w, tt.h)
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
			for v := viewTrees; v <= lastView; v++ {
				for p := placeAuto; p <= placeClosed; p++ {
					for i, n := range []int{0, 1, 3, 20} {
						s := shape{w: w, h: h, view: v, alerts: n, notices: n, place: p, strip: i%2 == 0, entries: i > 1, share: []int{0, 10, 50, 90}[i]}
						s.zoomed, s.pane = n == 3, pane(i)
						check(t, arrange(s), s)
					}
				}
			}
		}
	}
}

func check(t *testing.T, f frame, s shape) {
	t.Helper()
	if f.tooSmall {
		if s.w >= minWidth && s.h >= minHeight {
			t.Fatalf("%+v is said to be too small", s)
		}
		return
	}
	all := places(f)
	for i, p := range all {
		if p.empty() {
			continue
		}
		if p.x < 0 || p.y < 0 || p.x+p.w > s.w || p.y+p.h > s.h {
			t.Fatalf("%+v: %c reaches over the edge: %+v", s, p.letter, p.rect)
		}
		for _, q := range all[:i] {
			if !q.empty() && p.x < q.x+q.w && q.x < p.x+p.w && p.y < q.y+q.h && q.y < p.y+p.h {
				t.Fatalf("%+v: %c %+v overlaps %c %+v", s, p.letter, p.rect, q.letter, q.rect)
			}
		}
	}
	if !s.zoomed && (f.list.h < 3 || f.list.w < 37) || f.list.empty() && f.detail.empty() {
		t.Fatalf("%+v: the list has no room: %+v", s, f.list)
	}
}
