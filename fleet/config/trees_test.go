package config

import (
	"slices"
	"strings"
	"testing"
)

func TestWhatIsLookedForIsTakenFromTheFile(t *testing.T) {
	for _, tt := range []struct {
		text    string
		ignore  []string
		foreign bool
	}{
		{"", nil, true},
		{"foreign = true", nil, true},
		{"foreign = false", nil, false},
		{`ignore = ["third_party", "*.tmp", "/src/old", "rel/*"]`, []string{"third_party", "*.tmp", "/src/old", "/etc/fd/rel/*"}, true},
	} {
		c, err := Parse("/etc/fd/fleetdeck.toml", []byte(tt.text))
		if err != nil {
			t.Errorf("%q: %v", tt.text, err)
			continue
		}
		if c.Foreign != tt.foreign || !slices.Equal(c.Ignore, tt.ignore) {
			t.Errorf("%q: foreign %t, ignore %q", tt.text, c.Foreign, c.Ignore)
		}
	}
	if !Default("").Foreign {
		t.Error("without a file nobody looks for foreign agents")
	}
	for _, text := range []string{"roots = []\nignore = [\"[\"]", "roots = []\nignore = [\"\"]"} {
		if _, err := Parse("/etc/fd/fleetdeck.toml", []byte(text)); err == nil || !strings.Contains(err.Error(), "fleetdeck.toml:2: ignore: ") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
