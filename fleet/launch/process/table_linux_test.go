package process

import "testing"

func TestStatIsReadPastAHostileName(t *testing.T) {
	const tail = " 7 42 40 34816 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987654 1 2"
	tests := []struct {
		name, stat string
		zombie     bool
	}{
		{"plain", "42 (sh) S" + tail, false},
		{"parentheses and spaces", "42 (a) Z 1 1 (b) S" + tail, false},
		{"zombie", "42 (sh) Z" + tail, true},
		{"first thread ended, others run", "42 (sh) Z 7 42 40 34816 -1 4194304 1 2 3 4 5 6 7 8 20 0 3 0 987654 1 2", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e, _, err := parseStat(42, []byte(tt.stat))
			if err != nil {
				t.Fatal(err)
			}
			if e.parent != 7 || e.session != 40 || e.Start != 987654 || e.zombie != tt.zombie {
				t.Errorf("parseStat(%q) = %+v, want parent 7, session 40, start 987654, zombie %v", tt.stat, e, tt.zombie)
			}
		})
	}
	if _, _, err := parseStat(42, []byte("42 (sh) S 1 2")); err == nil {
		t.Error("a short line was accepted")
	}
}
