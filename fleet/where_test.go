package fleet

import "testing"

func TestATreeOfAnotherHostIsToldFromAPath(t *testing.T) {
	for _, c := range []struct{ tree, node, path string }{
		{At("crane", "/src/api"), "crane", "/src/api"},
		{"/src/api", "", "/src/api"},
		{"/src/a:/b", "", "/src/a:/b"},
		{"src/a:/b", "", "src/a:/b"},
		{":/src", "", ":/src"},
		{"crane:src", "", "crane:src"},
		{"crane:/a:/b", "crane", "/a:/b"},
		{"", "", ""},
	} {
		if node, path := Where(c.tree); node != c.node || path != c.path {
			t.Errorf("Where(%q) = %q, %q, want %q, %q", c.tree, node, path, c.node, c.path)
		}
	}
}
